"""Collect CPython's asyncio tests, run them on the inner loop, and report. Imported by the worker only."""

from __future__ import annotations

import asyncio
import asyncio.base_events
import faulthandler
import importlib
import io
import json
import sys
import time
import types
import unittest
from typing import Any

from agentloom.runtime.loop import Future, Task
from tests.asyncio_suite.selection import LOOP_TESTS, MODULES, reason_to_skip
from tests.asyncio_suite.suite_loop import GeneratorLoop, SuiteLoop

_HANGS_S = 60


def patch() -> None:
    """Make every loop that a test asks for an inner loop."""
    utils: Any = importlib.import_module("test.test_asyncio.utils")
    utils.TestLoop = GeneratorLoop
    policy: Any = asyncio.DefaultEventLoopPolicy
    policy._loop_factory = SuiteLoop
    for module in (asyncio, asyncio.base_events):
        vars(module)["BaseEventLoop"] = SuiteLoop


def own_classes(name: str, module: Any) -> dict[str, type[unittest.TestCase]]:
    """CPython's shared test bodies, applied to the inner loop's own loop, task and future."""
    base: type = module.test_utils.TestCase if hasattr(module, "test_utils") else unittest.TestCase

    def make(label: str, *bodies: type, **attributes: Any) -> dict[str, type[unittest.TestCase]]:
        return {label: type(label, (*bodies, base), {"__module__": module.__name__, **attributes})}

    if name == "test_tasks":
        return make("InnerTaskTests", module.BaseTaskTests, module.SetMethodsTest, Task=Task, Future=Future)
    if name == "test_futures":
        new_future: dict[str, Any] = {"_new_future": lambda self: Future(loop=self.loop)}
        return {
            **make("InnerFutureTests", module.BaseFutureTests, cls=Future),
            **make("InnerFutureDoneCallbackTests", module.BaseFutureDoneCallbackTests, **new_future),
        }
    if name == "test_eager_task_factory":
        return make("InnerEagerTaskTests", module.EagerTaskFactoryLoopTests, Task=Task)
    if name == "test_events":
        return {"InnerLoopTests": inner_loop_tests(base, module)}
    return {}


def inner_loop_tests(base: type, module: Any) -> type[unittest.TestCase]:
    """``EventLoopTestsMixin`` without its socket tests.

    Its methods use zero-argument ``super()``, which looks for the class in a closure cell: they get a new one.
    """
    cell = types.CellType()

    def rebind(function: Any) -> Any:
        if function.__code__.co_freevars != ("__class__",):
            return function
        code, name = function.__code__, function.__name__
        return types.FunctionType(code, function.__globals__, name, function.__defaults__, (cell,))

    mixin = module.EventLoopTestsMixin
    body: dict[str, Any] = {name: rebind(getattr(mixin, name)) for name in ("setUp", "tearDown", *LOOP_TESTS)}
    body["create_event_loop"] = lambda _self: SuiteLoop()
    body["__module__"] = module.__name__
    made: type[unittest.TestCase] = type("InnerLoopTests", (base,), body)
    cell.cell_contents = made
    return made


def classes(name: str) -> dict[str, type[unittest.TestCase]]:
    """The test classes of one module that apply, with those of `own_classes`; empty when this Python lacks it."""
    try:
        module = importlib.import_module(f"test.test_asyncio.{name}")
    except ModuleNotFoundError:
        return {}
    wanted = MODULES[name]
    found: dict[str, type[unittest.TestCase]] = {
        label: cls
        for label, cls in vars(module).items()
        if isinstance(cls, type) and issubclass(cls, unittest.TestCase) and cls.__module__ == module.__name__
    }
    chosen = {label: cls for label, cls in found.items() if wanted is None or label in wanted}
    return chosen | own_classes(name, module)


def collect(only: str | None) -> tuple[unittest.TestSuite, list[dict[str, str]]]:
    """The tests to run, and the ones skipped by name with the reason."""
    suite = unittest.TestSuite()
    skipped: list[dict[str, str]] = []
    for name in MODULES:
        of_module = unittest.TestSuite()
        for cls_name, cls in classes(name).items():
            for method in unittest.defaultTestLoader.getTestCaseNames(cls):
                test = f"{name}.{cls_name}.{method}"
                if only is not None and only not in test:
                    continue
                reason = reason_to_skip(test)
                if reason is None:
                    of_module.addTest(cls(method))
                else:
                    skipped.append({"test": test, "why": reason})
        suite.addTest(of_module)
    return suite, skipped


class Result(unittest.TextTestResult):
    """Ends the process with every stack when one test hangs."""

    def startTest(self, test: unittest.TestCase) -> None:
        faulthandler.dump_traceback_later(_HANGS_S, exit=True)
        super().startTest(test)


def label(test: Any) -> str:
    """ "module.Class.test" of a test case, or of the error of one's set-up."""
    return ".".join(test.id().split(".")[-3:])


def main(only: str | None) -> None:
    """Run everything whose name contains ``only`` and print the results as JSON."""
    patch()
    suite, skipped = collect(only)
    began = time.perf_counter()
    result_class: Any = Result
    result = unittest.TextTestRunner(stream=io.StringIO(), resultclass=result_class, verbosity=0).run(suite)
    faulthandler.cancel_dump_traceback_later()
    failed = [{"test": label(test), "text": text} for test, text in (*result.failures, *result.errors)]
    failed += [{"test": label(test), "text": "unexpected success"} for test in result.unexpectedSuccesses]
    results = {
        "python": sys.version.split()[0],
        "ran": result.testsRun - len(result.skipped),
        "failed": failed,
        "skipped": skipped,
        "not_here": [{"test": label(test), "why": why} for test, why in result.skipped],
        "seconds": round(time.perf_counter() - began, 1),
    }
    print(json.dumps(results))
