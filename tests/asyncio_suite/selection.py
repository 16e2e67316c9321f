"""Which of CPython's asyncio tests apply to a loop without sockets, and which of those are skipped, and why."""

from __future__ import annotations

import fnmatch

#: module -> classes to run; None: all of them.
MODULES: dict[str, tuple[str, ...] | None] = {
    "test_tasks": None,
    "test_futures": None,
    "test_futures2": None,
    "test_locks": None,
    "test_queues": None,
    "test_timeouts": None,
    "test_taskgroups": None,
    "test_waitfor": None,
    "test_runners": None,
    "test_pep492": None,
    "test_eager_task_factory": None,
    "test_threads": None,
    "test_context": None,
    "test_staggered": None,
    # The rest of these two is sockets, pipes, processes, event loop policies and address parsing.
    "test_base_events": ("BaseEventLoopTests", "RunningLoopTests"),
    "test_events": ("HandleTests", "TimerTests", "TestPyGetEventLoop", "TestCGetEventLoop"),
}

#: Tests of ``EventLoopTestsMixin`` (test_events) that need no socket, pipe, process or signal.
LOOP_TESTS = (
    "test_run_until_complete_nesting",
    "test_run_until_complete",
    "test_run_until_complete_stopped",
    "test_call_later",
    "test_call_soon",
    "test_call_soon_threadsafe",
    "test_call_soon_threadsafe_same_thread",
    "test_run_in_executor",
    "test_run_in_executor_cancel",
    "test_close_running_event_loop",
    "test_close",
    "test_timeout_rounding",
)

_INLINE = "wants a second thread; executors run inline here"
_INSIDE = "looks into the stock loop's heap or selector"

#: pattern of "module.Class.test" -> why the inner loop does not run it.
SKIPS: dict[str, str] = {
    "test_tasks.RunCoroutineThreadsafeTests.*": _INLINE,
    "test_events.InnerLoopTests.test_run_in_executor": _INLINE,
    "test_base_events.BaseEventLoopTests.test_shutdown_default_executor_timeout": _INLINE,
    "test_base_events.BaseEventLoopTests.test__run_once*": _INSIDE,
    "test_base_events.BaseEventLoopTests.test_call_later": _INSIDE,
    "test_base_events.BaseEventLoopTests.test_not_implemented": _INSIDE,
    "test_base_events.BaseEventLoopTests.test_run_forever_pre_stopped": _INSIDE,
    "test_base_events.BaseEventLoopTests.test_single_selecter_event_callback_after_stopping": _INSIDE,
    "test_events.InnerLoopTests.test_timeout_rounding": _INSIDE,
    "test_base_events.BaseEventLoopTests.test_custom_run_forever_integration": _INSIDE,
    "test_base_events.BaseEventLoopTests.test_call_later_negative_delays": (
        "wants a timer that is due to fire inside the round; here timers fire when nothing is ready"
    ),
    "test_base_events.BaseEventLoopTests.test_env_var_debug": "starts an interpreter with the stock loop",
    "test_base_events.BaseEventLoopTests.test_subprocess_*": "a run starts no processes",
    "test_events.Test*GetEventLoop.test_get_event_loop_new_process": "a run starts no processes",
}


def reason_to_skip(test: str) -> str | None:
    """The reason why ``test`` ("module.Class.test") is skipped, or None."""
    for pattern, reason in SKIPS.items():
        if fnmatch.fnmatchcase(test, pattern):
            return reason
    return None
