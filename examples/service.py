"""A small service: a line of text in, an answer back as it comes, a connection per request.

    python examples/service.py --port 8765 &
    echo "Once upon a time" | nc -N localhost 8765

A client that goes away aborts its own request and nobody else's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
from asyncio import StreamReader, StreamWriter

from specdec_rs import AsyncLLM, QueueFullError, SamplingParams, SpecdecError


class Service:
    """Answers clients with one engine."""

    def __init__(self, engine: AsyncLLM, params: SamplingParams) -> None:
        self._engine = engine
        self._params = params
        self._numbers = itertools.count()

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """One client, from its line to the end of its answer."""
        request_id = f"client-{next(self._numbers)}"
        try:
            prompt = (await reader.readline()).decode(errors="replace").rstrip("\n")
            await self._answer(prompt, request_id, writer)
        except QueueFullError:
            writer.write(b"busy, try again later\n")
        # ValueError: a line longer than the reader takes.
        except (SpecdecError, ValueError) as error:
            writer.write(f"error: {error}\n".encode())
        finally:
            writer.close()

    async def _answer(self, prompt: str, request_id: str, writer: StreamWriter) -> None:
        sent = 0
        async for output in self._engine.generate(prompt, self._params, request_id=request_id):
            [answer] = output.outputs
            writer.write(answer.text[sent:].encode())
            sent = len(answer.text)
            try:
                await writer.drain()
            except ConnectionError:
                await self._engine.abort(request_id)
        print(f"{request_id}: {answer.finish_reason}, {len(answer.token_ids)} tokens", flush=True)


async def main() -> None:
    """Serve until interrupted."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="smollm2-135m")
    options.add_argument("--port", type=int, default=8765)
    options.add_argument("--tokens", type=int, default=256)
    given = options.parse_args()
    params = SamplingParams(temperature=0, max_tokens=given.tokens)
    async with AsyncLLM(
        given.model, max_model_len=2048, max_num_seqs=4, max_queued_requests=16
    ) as engine:
        service = Service(engine, params)
        server = await asyncio.start_server(service.serve, "127.0.0.1", given.port)
        print(f"port {server.sockets[0].getsockname()[1]}", flush=True)
        async with server:
            await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
