"""Which test shows which sentence of the cases about leaks and live runs, and their neighbours."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARGUMENTS = "tests/cases/test_case_02_ids_in_arguments.py"

SHOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "2": {
        "a framework stamps fresh UUIDs on messages and tool calls in every process": (
            "tests/cases/test_case_02_fresh_ids.py::test_fresh_ids_in_a_new_process_are_no_miss",
            "tests/guard/test_packages.py::test_packages_replay_in_a_cold_process",
        ),
        "replayed in a new process: no miss": (
            "tests/cases/test_case_02_fresh_ids.py::test_fresh_ids_in_a_new_process_are_no_miss",
            "tests/cases/test_case_02_fresh_ids.py::test_under_the_guard_ids_come_again",
        ),
        "neighbour: an id that pairs with another result": (
            "tests/cases/test_case_02_fresh_ids.py::test_an_id_that_pairs_with_another_result_is_a_change",
        ),
        "neighbour: an id in a text, in an argument, in a field of a request": (
            "tests/cases/test_case_02_fresh_ids.py::test_an_id_in_the_text_is_a_leak",
            f"{ARGUMENTS}::test_a_fresh_id_in_an_argument_is_a_leak_and_the_report_says_both_ways_out",
            f"{ARGUMENTS}::test_a_fresh_id_in_a_field_of_a_request_names_the_profile_to_change",
        ),
        "neighbour: identifiers of one run are never those of another, nor made from its seed": (
            "tests/guard/test_together.py::",
            "tests/runtime/test_guard_ids.py::",
        ),
    },
    "11": {
        "an error text holding an object address and a path; replayed from another folder: equal bytes": (
            "tests/cases/test_case_11_leaks.py::test_an_error_with_an_address_and_a_path_replays_from_another_folder",
        ),
        "neighbour: an error that the agent's own code raised, with a path": (
            "tests/cases/test_case_11_leaks.py::test_an_error_of_the_agents_own_code_names_the_recorded_folder",
            "tests/guard/test_facts.py::test_files_below_the_recorded_folder_are_found_in_this_one",
        ),
        "a cache around a tool, cold and warm process: the same record, or a warning that names it": (
            "tests/cases/test_case_11_leaks.py::test_a_cache_around_a_tool_cold_and_warm",
        ),
        "neighbour: every other way in which a value of the process gets into a run": (
            "tests/guard/test_leaks.py::test_the_guard_does_what_the_page_says",
            "tests/cases/test_case_11_leaks.py::test_a_leak_is_named_with_its_place",
            "tests/cases/test_case_11_leaks.py::test_under_the_guard_it_is_no_leak",
        ),
        "neighbour: the order of a set": (
            "tests/cases/test_case_11_leaks.py::test_set_order_under_another_hash_seed",
            "tests/cases/test_case_11_leaks.py::test_the_command_line_gives_the_recorded_hash_seed_back",
        ),
    },
    "13": {
        "recording missing, mode misspelt, network up: a non-zero exit, no socket, no name look-up": (
            "tests/cases/test_case_13_never_live.py::test_nothing_is_sent_with_the_network_up",
            "tests/cases/test_case_13_never_live.py::test_the_watch_sees_a_live_run",
        ),
        "a replay never becomes a live run": (
            "tests/cases/test_case_13_never_live.py::test_a_miss_is_never_answered_live",
            "tests/cases/test_case_13_never_live.py::test_no_variable_turns_a_replay_live",
        ),
        "neighbour: code that reaches for the world past every host call": (
            "tests/cases/test_case_13_never_live.py::test_code_that_reaches_for_the_world_by_itself_on_replay",
            "tests/guard/test_scripts.py::test_the_operating_system_refuses_what_python_does_not_see",
        ),
        "neighbour: an undecorated function that writes a file, a database, and through C": (
            "tests/guard/test_scripts.py::test_a_file_a_database_and_c_in_one_function",
            "tests/guard/test_scripts.py::test_an_undecorated_function_is_run_once_and_never_again",
        ),
    },
}
"""Case -> sentence -> tests; a file alone where all of it is about the sentence."""


@pytest.mark.parametrize("case", SHOWN)
def test_what_is_said_to_show_a_case_is_there(case: str) -> None:
    for sentence, tests in SHOWN[case].items():
        assert tests, sentence
        for test in tests:
            file, _, name = test.partition("::")
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            names = [
                node.name
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            assert name in names or (not name and any(one.startswith("test_") for one in names)), test
