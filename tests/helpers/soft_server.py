"""A server that scores and chooses with log-probabilities, as many as it is told to."""

import json
import math
from collections.abc import Callable, Mapping, Sequence

from fault_server import Body, FaultServer, error, shown_texts
from starlette.responses import Response

Chances = Mapping[str, float]
Tokens = Sequence[tuple[str, Chances]]
"""What was said token by token, each with the probabilities of what could have been."""

REASON: Tokens = [("\n", {"\n": 1.0}), ("Because", {"Because": 0.5, "Since": 0.4})]


class SoftServer(FaultServer):
    """Answers by `say`: the tokens for the texts shown, or None for an answer without them."""

    say: Callable[[tuple[str, ...], int], Tokens] = staticmethod(lambda texts, n: REASON)
    tells: Callable[[tuple[str, ...]], bool] = staticmethod(lambda texts: True)
    most_listed = 20

    def __init__(self) -> None:
        super().__init__()
        self.answer = lambda body: body["words"]

    def _refused(self, body: Body) -> Response | None:
        if body.get("top_logprobs", 0) > self.most_listed:
            return error(400, f"top_logprobs must be at most {self.most_listed}")
        return super()._refused(body)

    async def _reply(self, body: Body) -> Response:
        texts, n = shown_texts(body), self.asked[shown_texts(body)]
        said = self.say(texts, n) if texts else ()
        body = {**body, "words": "".join(token for token, _ in said)}
        response = await super()._reply(body)
        if not texts or response.status_code != 200:
            return response
        reply = json.loads(response.body)
        if reply["choices"][0]["logprobs"]:
            told = {"content": [_token(*one) for one in said], "refusal": None}
            reply["choices"][0]["logprobs"] = told if self.tells(texts) else None
        return Response(json.dumps(reply), media_type="application/json")


def _token(said: str, chances: Chances) -> Body:
    tops = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in chances.items()]
    return {"token": said, "logprob": math.log(chances[said]), "bytes": None, "top_logprobs": tops}


def requests(server: FaultServer) -> list[Body]:
    """What was asked about texts, without the words."""
    return [
        {name: value for name, value in body.items() if name not in ("messages", "words")}
        for body in server.presentations
    ]
