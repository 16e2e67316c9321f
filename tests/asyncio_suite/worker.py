"""Run CPython's asyncio tests on the inner loop, in this interpreter; print one JSON object of results.

Needs the interpreter's own ``test`` package, and nothing from elsewhere.
"""

from __future__ import annotations

import asyncio
import asyncio.base_events
import faulthandler
import importlib
import io
import json
import sys
import time
import unittest
from typing import Any

import bare

bare.install()

from selection import LOOP_TESTS, MODULES, reason_to_skip
from suite_loop import GeneratorLoop, SuiteLoop

from agentloom.runtime.loop import Future, Task

_PATIENCE_S = 30


def patch() -> None:
    """Make every loop that a test asks for an inner loop."""
    from test.test_asyncio import utils

    utils.TestLoop = GeneratorLoop  # type: ignore[misc]
    policy: Any = asyncio.DefaultEventLoopPolicy
    policy._loop_factory = SuiteLoop
    asyncio.BaseEventLoop = SuiteLoop  # type: ignore[misc]
    asyncio.base_events.BaseEventLoop = SuiteLoop  # type: ignore[misc]


def own_classes(name: str, module: Any) -> dict[str, type]:
    """CPython's shared test bodies, applied to the inner loop's own loop, task and future."""
    from test.test_asyncio import utils

    base = utils.TestCase

    def make(label: str, bodies: tuple[type, ...], **attributes: Any) -> dict[str, type]:
        return {label: type(label, (*bodies, base), {"__module__": module.__name__, **attributes})}

    if name == "test_tasks":
        return make("InnerTaskTests", (module.BaseTaskTests, module.SetMethodsTest), Task=Task, Future=Future)
    if name == "test_futures":
        return {
            **make("InnerFutureTests", (module.BaseFutureTests,), cls=Future),
            **make(
                "InnerFutureDoneCallbackTests",
                (module.BaseFutureDoneCallbackTests,),
                _new_future=lambda self: Future(loop=self.loop),
            ),
        }
    if name == "test_eager_task_factory":
        return make("InnerEagerTaskTests", (module.EagerTaskFactoryLoopTests,), Task=Task)
    if name == "test_events":
        mixin = module.EventLoopTestsMixin
        body = {n: getattr(mixin, n) for n in ("setUp", "tearDown", *LOOP_TESTS) if hasattr(mixin, n)}
        return {"InnerLoopTests": inner_loop_tests(base, body, module.__name__)}
    return {}


def inner_loop_tests(base: type, body: dict[str, Any], module: str) -> type:
    """`EventLoopTestsMixin` without its socket tests. Its methods use zero-argument super(), hence the rebinding."""
    import types

    def rebind(function: Any, cell: Any) -> Any:
        if function.__closure__ is None or function.__code__.co_freevars != ("__class__",):
            return function
        return types.FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, (cell,)
        )

    cell = types.CellType()
    methods = {name: rebind(function, cell) for name, function in body.items()}
    methods["__module__"] = module
    methods["create_event_loop"] = lambda self: SuiteLoop()
    cls = type("InnerLoopTests", (base,), methods)
    cell.cell_contents = cls
    return cls


def collect(only: str | None) -> tuple[unittest.TestSuite, list[dict[str, str]]]:
    """The tests to run, and the ones skipped by name with the reason."""
    suite = unittest.TestSuite()
    skipped: list[dict[str, str]] = []
    for name, wanted in MODULES.items():
        try:
            module = importlib.import_module(f"test.test_asyncio.{name}")
        except ModuleNotFoundError:
            continue
        found = {
            n: c
            for n, c in vars(module).items()
            if isinstance(c, type) and issubclass(c, unittest.TestCase) and c.__module__ == module.__name__
        }
        chosen = {n: c for n, c in found.items() if wanted is None or n in wanted}
        chosen.update(own_classes(name, module))
        cases = unittest.TestSuite()
        for label, cls in chosen.items():
            for method in unittest.defaultTestLoader.getTestCaseNames(cls):
                test = f"{name}.{label}.{method}"
                if only is not None and only not in test:
                    continue
                reason = reason_to_skip(test)
                if reason is None:
                    cases.addTest(cls(method))
                else:
                    skipped.append({"test": test, "why": reason})
        suite.addTest(cases)
    return suite, skipped


class Result(unittest.TextTestResult):
    """Keeps what the table needs: which tests ran, and how each of the others ended."""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        faulthandler.dump_traceback_later(_PATIENCE_S, exit=True)  # a test that hangs is named by its stack
        self.started = time.perf_counter()
        self.slow: list[tuple[float, str]] = getattr(self, "slow", [])

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        took = time.perf_counter() - self.started
        if took > 0.5:
            self.slow.append((round(took, 2), label(test)))


def label(test: Any) -> str:
    """ "module.Class.test" of a test case or of the error of one's set-up."""
    parts = test.id().split(".")
    return ".".join(parts[-3:])


def main() -> int:
    only = sys.argv[1] if len(sys.argv) > 1 else None
    patch()
    suite, skipped = collect(only)
    log = io.StringIO()
    began = time.perf_counter()
    runner = unittest.TextTestRunner(stream=log, resultclass=Result, verbosity=0)
    result: Any = runner.run(suite)
    failed = [
        {"test": label(test), "text": text} for test, text in (*result.failures, *result.errors)
    ] + [{"test": label(test), "text": "unexpected success"} for test in result.unexpectedSuccesses]
    json.dump(
        {
            "python": sys.version.split()[0],
            "ran": result.testsRun - len(result.skipped),
            "failed": failed,
            "skipped": skipped,
            "not_here": [{"test": label(test), "why": why} for test, why in result.skipped],
            "slow": getattr(result, "slow", []),
            "seconds": round(time.perf_counter() - began, 1),
        },
        sys.stdout,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
