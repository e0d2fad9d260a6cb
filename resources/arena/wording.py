"""Texts of the built-in arena in each of its languages; the rules are elsewhere.

No prose sentence here holds a digit, a day of the week, a place or a record key: the checker
finds answers by those. Each family of contestants opens in its own words, which is how a judge
with a family bias knows its own.
"""

import re
from dataclasses import dataclass
from functools import cached_property

FAMILIES: tuple[str, ...] = ("aster", "birch", "cedar", "dahlia", "elder", "fern")
"""Families of simulated contestants; plants, not products."""

ORNAMENTS: str = "~*+=^"
"""Signs of the line that closes a completion; no checker takes them for part of an answer."""

RECORD_KEYS: tuple[str, ...] = ("product", "colour", "weight", "price", "stock")
"""Keys of the JSON record that a prompt may ask for, the same in every language."""


@dataclass(frozen=True)
class Wording:
    """One language: instructions with slots, nouns to fill them, and the contestants' prose."""

    calculate: str
    sort: str
    extract: str
    record: str
    notice: str
    order_lines: tuple[str, ...]
    cancelled_line: str
    days: tuple[str, ...]
    places: tuple[str, ...]
    events: tuple[str, ...]
    products: tuple[str, ...]
    colours: tuple[str, ...]
    openings: tuple[str, ...]
    paddings: tuple[str, ...]

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Every word a contestant of this language may write, in lower case."""
        nouns = (*self.days, *self.places, *self.events, *self.products, *self.colours)
        return frozenset(words(" ".join((*self.openings, *self.paddings, *nouns, *RECORD_KEYS))))

    @cached_property
    def style(self) -> dict[str, str]:
        """The family that opens with a sentence."""
        return dict(zip(self.openings, FAMILIES, strict=True))


_WORD = re.compile(r"[^\W\d_]+")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without digits and punctuation."""
    return _WORD.findall(text.lower())


WORDINGS: dict[str, Wording] = {
    "en": Wording(
        calculate="Work out each of these. Answer with one line per task, written as the task, "
        "an equals sign and the result.\n\n{tasks}",
        sort="Sort these numbers from smallest to largest. Answer with a single line of numbers "
        "separated by commas.\n\n{numbers}",
        extract="List the codes of all valid orders in this message, one per line, each after a "
        "hyphen and a space. Leave out cancelled orders.\n\n{message}",
        record="Turn this description into one JSON object with exactly the keys {keys}; give "
        "numbers without units.\n\nThe article is called {product}, its shade is {colour}. It "
        "weighs {weight} kg and costs {price} €. We have {stock} of them.",
        notice="Rewrite this notice as a single line of at most {limit} words. Keep day, time, "
        "place and price.\n\nWe are happy to tell all our neighbours about the next event: "
        "{event}. It will be held on {day} and begins at {time}. Meeting point: {place}. "
        "Tickets cost {price} € each, and everyone is welcome.",
        order_lines=(
            "Please send {code} to our office.",
            "We also need {code} by next week.",
            "The parcel for {code} has been paid.",
            "Could you confirm {code} as well?",
            "Last but not least there is {code}.",
            "My colleague added {code} yesterday.",
        ),
        cancelled_line="Order {code} was cancelled.",
        days=("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        places=("Town Hall", "Old Mill", "City Library", "River Park", "Harbour Square"),
        events=("flea market", "choir concert", "chess evening", "book swap", "garden tour"),
        products=("lamp", "kettle", "bench", "mirror", "carpet"),
        colours=("blue", "green", "yellow", "white", "black"),
        openings=(
            "Here is the answer you asked for, checked against your text.",
            "Sure, this is what I found after working through your request.",
            "Certainly, the solution below follows your instructions step by step.",
            "Thanks for the question, please find the finished result underneath.",
            "Done, the requested output comes next without further remarks.",
            "Let us look at this carefully, then the outcome reads like this.",
        ),
        paddings=(
            "As you can see, tasks like this one reward a calm and careful approach.",
            "It is always worth remembering that small details often make the difference.",
            "There are of course several other ways in which one might look at this question.",
            "In general, a clear structure helps every reader to follow the train of thought.",
            "Feel free to come back at any time should you want something else explained.",
            "I hope that this answer is helpful and that it saves you some precious time.",
        ),
    ),
    "de": Wording(
        calculate="Berechne jede dieser Aufgaben. Antworte mit einer Zeile je Aufgabe: die "
        "Aufgabe, ein Gleichheitszeichen und das Ergebnis.\n\n{tasks}",
        sort="Sortiere diese Zahlen von der kleinsten zur größten. Antworte mit einer einzigen "
        "Zeile, die Zahlen durch Kommas getrennt.\n\n{numbers}",
        extract="Nenne die Nummern aller gültigen Bestellungen in dieser Nachricht, eine je "
        "Zeile, jede nach einem Bindestrich und einem Leerzeichen. Lass stornierte weg.\n\n"
        "{message}",
        record="Mach aus dieser Beschreibung ein JSON-Objekt mit genau den Schlüsseln {keys}; "
        "Zahlen ohne Einheit.\n\nDer Artikel heißt {product}, sein Farbton ist {colour}. Er "
        "wiegt {weight} kg und kostet {price} €. Davon sind {stock} vorhanden.",
        notice="Schreibe diese Mitteilung als eine einzige Zeile mit höchstens {limit} Wörtern. "
        "Behalte Tag, Uhrzeit, Ort und Preis.\n\nWir freuen uns, der ganzen Nachbarschaft die "
        "nächste Veranstaltung anzukündigen: {event}. Sie findet am {day} statt und beginnt um "
        "{time} Uhr. Treffpunkt: {place}. Karten kosten je {price} €, alle sind willkommen.",
        order_lines=(
            "Bitte schicken Sie {code} an unser Büro.",
            "Außerdem brauchen wir {code} bis nächste Woche.",
            "Das Paket zu {code} ist schon bezahlt.",
            "Könnten Sie auch {code} bestätigen?",
            "Und zuletzt fehlt noch {code}.",
            "Gestern kam {code} hinzu.",
        ),
        cancelled_line="Bestellung {code} wurde storniert.",
        days=("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"),
        places=("Rathaus", "Alte Mühle", "Stadtbücherei", "Uferpark", "Hafenplatz"),
        events=("Flohmarkt", "Chorkonzert", "Schachabend", "Büchertausch", "Gartenführung"),
        products=("Lampe", "Kessel", "Bank", "Spiegel", "Teppich"),
        colours=("blau", "grün", "gelb", "weiß", "schwarz"),
        openings=(
            "Hier ist die gewünschte Antwort, verglichen mit dem vorliegenden Text.",
            "Gerne, das habe ich beim Durcharbeiten der Anfrage herausgefunden.",
            "Selbstverständlich, die folgende Lösung hält sich genau an die Vorgaben.",
            "Danke für die Frage, unten steht das fertige Ergebnis.",
            "Erledigt, die verlangte Ausgabe folgt ohne weitere Bemerkungen.",
            "Schauen wir uns das sorgfältig an, dann lautet das Resultat folgendermaßen.",
        ),
        paddings=(
            "Wie man sieht, belohnen solche Aufgaben eine ruhige und sorgfältige Arbeitsweise.",
            "Man sollte stets bedenken, dass oft kleine Einzelheiten den Unterschied machen.",
            "Natürlich gibt es noch mehrere andere Wege, diese Frage zu betrachten.",
            "Allgemein hilft ein klarer Aufbau allen Lesern, dem Gedankengang zu folgen.",
            "Melden Sie sich jederzeit wieder, falls noch etwas erklärt werden soll.",
            "Ich hoffe, dass diese Antwort hilfreich ist und etwas kostbare Zeit spart.",
        ),
    ),
    "fr": Wording(
        calculate="Calcule chacune de ces opérations. Réponds avec une ligne par opération : "
        "l'opération, un signe égal et le résultat.\n\n{tasks}",
        sort="Trie ces nombres du plus petit au plus grand. Réponds avec une seule ligne de "
        "nombres séparés par des virgules.\n\n{numbers}",
        extract="Donne les codes de toutes les commandes valables de ce message, un par ligne, "
        "chacun après un tiret et une espace. Laisse de côté les commandes annulées.\n\n"
        "{message}",
        record="Transforme cette description en un objet JSON avec exactement les clés {keys} ; "
        "donne les nombres sans unité.\n\nL'article s'appelle {product}, sa teinte est {colour}. "
        "Il pèse {weight} kg et coûte {price} €. Il nous en reste {stock}.",
        notice="Réécris cet avis en une seule ligne de {limit} mots au plus. Garde le jour, "
        "l'heure, le lieu et le prix.\n\nNous sommes heureux d'annoncer à tout le quartier le "
        "prochain rendez-vous : {event}. Il aura lieu {day} et commencera à {time}. Point de "
        "rencontre : {place}. Les billets coûtent {price} € chacun, bienvenue à tous.",
        order_lines=(
            "Merci d'envoyer {code} à notre bureau.",
            "Il nous faut aussi {code} pour la semaine prochaine.",
            "Le colis de {code} est déjà payé.",
            "Pourriez-vous confirmer {code} également ?",
            "Enfin, il manque encore {code}.",
            "Hier, nous avons ajouté {code}.",
        ),
        cancelled_line="La commande {code} a été annulée.",
        days=("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
        places=("Hôtel de Ville", "Vieux Moulin", "Médiathèque", "Parc Fluvial", "Place du Port"),
        events=("brocante", "concert choral", "soirée échecs", "troc de livres", "visite guidée"),
        products=("lampe", "bouilloire", "banc", "miroir", "tapis"),
        colours=("bleu", "vert", "jaune", "blanc", "noir"),
        openings=(
            "Voici la réponse demandée, vérifiée avec le texte fourni.",
            "Bien sûr, voilà ce que j'obtiens après avoir traité la demande.",
            "Certainement, la solution suivante respecte les consignes pas à pas.",
            "Merci pour la question, le résultat final se trouve juste dessous.",
            "Terminé, la sortie voulue arrive sans autre remarque.",
            "Regardons cela attentivement, puis le bilan se présente ainsi.",
        ),
        paddings=(
            "Comme on le voit, ce genre de tâche récompense une démarche calme et soigneuse.",
            "Il faut toujours garder en tête que les petits détails font souvent la différence.",
            "Il existe bien entendu plusieurs autres manières de considérer cette question.",
            "En général, une structure claire aide chaque lecteur à suivre le raisonnement.",
            "Revenez quand vous voulez si quelque chose d'autre mérite une explication.",
            "J'espère que cette réponse est utile et qu'elle fait gagner un temps précieux.",
        ),
    ),
    "es": Wording(
        calculate="Calcula cada una de estas operaciones. Responde con una línea por operación: "
        "la operación, un signo igual y el resultado.\n\n{tasks}",
        sort="Ordena estos números de menor a mayor. Responde con una sola línea de números "
        "separados por comas.\n\n{numbers}",
        extract="Escribe los códigos de todos los pedidos válidos de este mensaje, uno por "
        "línea, cada uno tras un guion y un espacio. Omite los pedidos anulados.\n\n{message}",
        record="Convierte esta descripción en un objeto JSON con exactamente las claves {keys}; "
        "da los números sin unidades.\n\nEl artículo se llama {product} y su tono es {colour}. "
        "Pesa {weight} kg y cuesta {price} €. Nos quedan {stock}.",
        notice="Reescribe este aviso en una sola línea de {limit} palabras como máximo. Conserva "
        "el día, la hora, el lugar y el precio.\n\nNos alegra anunciar a todo el vecindario la "
        "próxima cita: {event}. Será el {day} y empieza a las {time}. Punto de encuentro: "
        "{place}. Las entradas cuestan {price} € cada una y todos son bienvenidos.",
        order_lines=(
            "Por favor, envíen {code} a nuestra oficina.",
            "También necesitamos {code} para la próxima semana.",
            "El paquete de {code} ya está pagado.",
            "¿Podrían confirmar {code} también?",
            "Por último falta {code}.",
            "Ayer añadimos {code}.",
        ),
        cancelled_line="El pedido {code} fue anulado.",
        days=("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"),
        places=("Ayuntamiento", "Molino Viejo", "Biblioteca", "Parque Fluvial", "Plaza del Puerto"),
        events=("mercadillo", "concierto coral", "tarde de ajedrez", "trueque de libros", "paseo"),
        products=("lámpara", "tetera", "banco", "espejo", "alfombra"),
        colours=("azul", "verde", "amarillo", "blanco", "negro"),
        openings=(
            "Aquí está la respuesta solicitada, comprobada con el texto recibido.",
            "Claro, esto es lo que obtuve después de revisar la petición.",
            "Por supuesto, la siguiente solución cumple las instrucciones paso a paso.",
            "Gracias por la pregunta, el resultado final aparece justo debajo.",
            "Listo, la salida requerida llega sin más comentarios.",
            "Miremos esto con cuidado, entonces el balance queda así.",
        ),
        paddings=(
            "Como se ve, este tipo de tareas recompensa un método tranquilo y cuidadoso.",
            "Siempre conviene recordar que los pequeños detalles suelen marcar la diferencia.",
            "Existen desde luego varias maneras distintas de considerar esta pregunta.",
            "En general, una estructura clara ayuda a cada lector a seguir el razonamiento.",
            "Vuelva cuando quiera si alguna otra cosa merece una explicación.",
            "Espero que esta respuesta sea útil y que ahorre algo de tiempo precioso.",
        ),
    ),
    "ru": Wording(
        calculate="Вычисли каждый из этих примеров. Ответь по одной строке на пример: сам "
        "пример, знак равенства и результат.\n\n{tasks}",
        sort="Отсортируй эти числа от меньшего к большему. Ответь одной строкой, числа через "
        "запятую.\n\n{numbers}",
        extract="Перечисли коды всех действующих заказов из этого сообщения, по одному в строке, "
        "каждый после дефиса и пробела. Отменённые заказы пропусти.\n\n{message}",
        record="Преврати это описание в один объект JSON, в котором есть ровно ключи {keys}; "
        "числа пиши без единиц.\n\nТовар называется {product}, его оттенок {colour}. Он весит "
        "{weight} кг и стоит {price} €. На складе их {stock}.",
        notice="Перепиши это объявление одной строкой не длиннее {limit} слов. Сохрани день, "
        "время, место и цену.\n\nМы рады сообщить всем соседям о следующем событии: {event}. "
        "День проведения: {day}, начало в {time}. Место встречи: {place}. Билеты стоят "
        "{price} € каждый, приглашаем всех.",
        order_lines=(
            "Пожалуйста, отправьте {code} в наш офис.",
            "Ещё нам нужен {code} до следующей недели.",
            "Посылка по {code} уже оплачена.",
            "Подтвердите, пожалуйста, и {code}.",
            "Наконец, не хватает {code}.",
            "Вчера мы добавили {code}.",
        ),
        cancelled_line="Заказ {code} отменён.",
        days=(
            "понедельник",
            "вторник",
            "среда",
            "четверг",
            "пятница",
            "суббота",
            "воскресенье",
        ),
        places=("Ратуша", "Старая мельница", "Библиотека", "Речной парк", "Портовая площадь"),
        events=("барахолка", "хоровой концерт", "вечер шахмат", "обмен книгами", "экскурсия"),
        products=("лампа", "чайник", "скамья", "зеркало", "ковёр"),
        colours=("синий", "зелёный", "жёлтый", "белый", "чёрный"),
        openings=(
            "Вот запрошенный ответ, сверенный с исходным текстом.",
            "Конечно, вот что получилось после разбора этого запроса.",
            "Разумеется, решение ниже шаг за шагом следует указаниям.",
            "Спасибо за вопрос, готовый результат находится чуть ниже.",
            "Готово, нужный вывод идёт далее без лишних замечаний.",
            "Посмотрим на это внимательно, тогда итог выглядит так.",
        ),
        paddings=(
            "Как видно, подобные задачи вознаграждают спокойный и аккуратный подход.",
            "Всегда стоит помнить, что мелкие детали часто решают исход дела.",
            "Разумеется, существует несколько других способов взглянуть на этот вопрос.",
            "Вообще ясная структура помогает каждому читателю следить за ходом мысли.",
            "Возвращайтесь в любое время, если понадобится что-нибудь ещё объяснить.",
            "Надеюсь, что этот ответ полезен и сэкономит немного драгоценного времени.",
        ),
    ),
}
"""Wording by ISO 639-1 code."""

LANGUAGES: tuple[str, ...] = tuple(WORDINGS)
