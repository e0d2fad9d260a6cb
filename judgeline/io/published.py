"""Columns as they are published: names, languages, outcomes and truth values."""

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from judgeline.verdict import slug

_NAMES = """
aa Afar; ab Abkhazian, Abkhaz; ae Avestan; af Afrikaans; ak Akan; am Amharic; an Aragonese;
ar Arabic; as Assamese; av Avaric; ay Aymara; az Azerbaijani; ba Bashkir;
be Belarusian, Byelorussian; bg Bulgarian; bi Bislama; bm Bambara; bn Bengali, Bangla;
bo Tibetan; br Breton; bs Bosnian; ca Catalan, Valencian; ce Chechen; ch Chamorro; co Corsican;
cr Cree; cs Czech; cv Chuvash; cy Welsh; da Danish; de German; dv Divehi, Dhivehi; dz Dzongkha;
ee Ewe; el Greek, Modern Greek; en English; eo Esperanto; es Spanish, Castilian; et Estonian;
eu Basque; fa Persian, Farsi; ff Fulah; fi Finnish; fj Fijian; fo Faroese; fr French;
fy Western Frisian, Frisian; ga Irish; gd Scottish Gaelic, Scots Gaelic; gl Galician; gn Guarani;
gu Gujarati; gv Manx; ha Hausa; he Hebrew; hi Hindi; ho Hiri Motu; hr Croatian;
ht Haitian Creole, Haitian; hu Hungarian; hy Armenian; hz Herero; ia Interlingua; id Indonesian;
ie Interlingue; ig Igbo; ik Inupiaq, Inupiak; io Ido; is Icelandic; it Italian; iu Inuktitut;
ja Japanese; jv Javanese; ka Georgian; kg Kongo; ki Kikuyu; kj Kuanyama; kk Kazakh;
kl Kalaallisut, Greenlandic; km Khmer; kn Kannada; ko Korean; kr Kanuri; ks Kashmiri; ku Kurdish;
kv Komi; kw Cornish; ky Kyrgyz, Kirghiz; la Latin; lb Luxembourgish; lg Ganda, Luganda;
li Limburgish; ln Lingala; lo Lao, Laothian; lt Lithuanian; lv Latvian; mg Malagasy;
mh Marshallese; mi Maori; mk Macedonian; ml Malayalam; mn Mongolian; mr Marathi; ms Malay;
mt Maltese; my Burmese; na Nauru; nb Norwegian Bokmal, Norwegian Bokmål; ne Nepali; ng Ndonga;
nl Dutch; nn Norwegian Nynorsk, Norwegian N; no Norwegian; nv Navajo; ny Nyanja, Chichewa;
oc Occitan; oj Ojibwa; om Oromo; or Oriya, Odia; os Ossetic; pa Punjabi; pi Pali; pl Polish;
ps Pashto; pt Portuguese; qu Quechua; rm Romansh, Rhaeto Romance; rn Rundi; ro Romanian;
ru Russian; rw Kinyarwanda; sa Sanskrit; sc Sardinian; sd Sindhi; se Northern Sami; sg Sango;
si Sinhala, Sinhalese; sk Slovak; sl Slovenian; sm Samoan; sn Shona; so Somali; sq Albanian;
sr Serbian; ss Swati, Siswant; st Southern Sotho, Sesotho; su Sundanese; sv Swedish;
sw Swahili; ta Tamil; te Telugu; tg Tajik; th Thai; ti Tigrinya; tk Turkmen; tl Tagalog;
tn Tswana; to Tongan; tr Turkish; ts Tsonga; tt Tatar; tw Twi; ty Tahitian; ug Uyghur, Uighur;
uk Ukrainian; ur Urdu; uz Uzbek; ve Venda; vi Vietnamese; vo Volapük, Volapuk; wa Walloon;
wo Wolof; xh Xhosa; yi Yiddish; yo Yoruba; za Zhuang; zh Chinese; zu Zulu;
ceb Cebuano; chr Cherokee; fil Filipino; haw Hawaiian; hmn Hmong; kha Khasi; nso Pedi;
sco Scots; syr Syriac; war Waray; yue Cantonese
"""

CODES: dict[str, str] = {
    name.strip().lower(): code
    for code, names in (entry.strip().split(" ", 1) for entry in _NAMES.split(";"))
    for name in names.split(",")
}
"""ISO 639-1 code by lower-case English name."""

_TAG = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]+)*", re.IGNORECASE)
_UNKNOWN = {"un", "und", "xx", "mul", "zxx", "mis", "nan"}
_RETIRED = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro"}


def language_code(published: object) -> str | None:
    """Return the code of a language given by English name or tag; None where it is unknown.

    A tag loses its script and region (``zh-Hant`` is ``zh``). Languages without a code of two
    letters keep their tag of three. Names of no known language, and what detectors write when
    they found none (``unknown``, ``un``, ``und``), are unknown.
    """
    if not isinstance(published, str):
        return None
    text = published.strip().lower()
    if (name := text.replace("_", " ")) in CODES:
        return CODES[name]
    tag = _TAG.fullmatch(text)
    if tag is None or tag[1] in _UNKNOWN:
        return None
    return _RETIRED.get(tag[1], tag[1])


def names(published: pd.Series) -> pd.Series:
    """Return names without blanks around them, null where nothing is left."""
    texts = published.astype("str").str.strip()
    return texts.mask(texts.eq("") | published.isna().to_numpy())


def judge_slugs(published: pd.Series) -> pd.Series:
    """Return the slugs of judges' names, null where a name is.

    Raises
    ------
    ValueError
        If two names share a slug, or one has none.
    """
    slugs = {name: slug(name) for name in published.dropna().unique()}
    first: dict[str, str] = {}
    for name, short in slugs.items():
        if first.setdefault(short, name) != name:
            raise ValueError(
                f"judges {first[short]!r} and {name!r} share the slug {short!r}; rename one in "
                "its file"
            )
    return published.map(slugs)


def languages(published: pd.Series) -> pd.Series:
    """Return ISO codes of languages given by name or tag, null where unknown."""
    codes = {value: language_code(value) for value in published.dropna().unique()}
    return published.map(codes).astype("str")


def outcomes(published: pd.Series, codes: Mapping[Any, float]) -> pd.Series:
    """Return A's share of the win by its published code, null for any other code."""
    return published.map(dict(codes)).astype("float64")


def truths(published: pd.Series) -> pd.Series:
    """Return True where a boolean, or the text or number of one, says so."""
    return published.astype("str").str.lower().isin(["true", "1", "1.0"])
