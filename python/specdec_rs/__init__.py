"""specdec_rs: exact speculative decoding of language models.

    context -> draft -> tree -> forward -> verify -> commit -> stream

Importing this package loads neither torch nor numpy nor any command-line library.
"""

from __future__ import annotations

from specdec_rs._core import build_info
from specdec_rs._prompts import TextPrompt, TokensPrompt
from specdec_rs.async_llm import AsyncLLM
from specdec_rs.errors import (
    ClosedError,
    ConfigError,
    ContextLengthError,
    DiskFullError,
    DownloadError,
    EngineDeadError,
    FetchError,
    ForkError,
    HashMismatchError,
    LogitsError,
    MemoryBudgetError,
    ModelLoadError,
    ModelNotFoundError,
    NotSupportedYetError,
    PipMissingError,
    QueueFullError,
    ReentryError,
    RequestAborted,
    SpecdecError,
)
from specdec_rs.llm import LLM, TextStream
from specdec_rs.outputs import (
    CompletionOutput,
    EngineMetrics,
    FinishReason,
    Logprob,
    MemoryReport,
    RequestMetrics,
    RequestOutput,
    SpeculativeDecodingStats,
    StreamChunk,
)
from specdec_rs.params import SamplingParams
from specdec_rs.speculative import SpeculativeConfig
from specdec_rs.tokenizer import Tokenizer

__version__: str = build_info()["version"]

__all__ = [
    "LLM",
    "AsyncLLM",
    "ClosedError",
    "CompletionOutput",
    "ConfigError",
    "ContextLengthError",
    "DiskFullError",
    "DownloadError",
    "EngineDeadError",
    "EngineMetrics",
    "FetchError",
    "FinishReason",
    "ForkError",
    "HashMismatchError",
    "LogitsError",
    "Logprob",
    "MemoryBudgetError",
    "MemoryReport",
    "ModelLoadError",
    "ModelNotFoundError",
    "NotSupportedYetError",
    "PipMissingError",
    "QueueFullError",
    "ReentryError",
    "RequestAborted",
    "RequestMetrics",
    "RequestOutput",
    "SamplingParams",
    "SpecdecError",
    "SpeculativeConfig",
    "SpeculativeDecodingStats",
    "StreamChunk",
    "TextPrompt",
    "TextStream",
    "Tokenizer",
    "TokensPrompt",
    "__version__",
    "build_info",
]
