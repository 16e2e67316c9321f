"""Which test shows which sentence of the cases, and of their neighbours."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARGUMENTS = "tests/cases/test_case_02_ids_in_arguments.py"

SHOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "1": {
        "the same upload under another boundary is the same; one flipped byte is another, and its part is named": (
            "tests/cases/test_case_01_uploads.py::test_another_boundary_is_the_same_request",
            "tests/cases/test_case_01_uploads.py::test_what_differs_is_named_by_its_part",
            "tests/cases/test_case_01_sdk_uploads.py::test_a_boundary_is_no_difference_and_a_byte_is_one",
        ),
        "neighbour: compressed bodies, JSON in parts, multipart of another kind": (
            "tests/cases/test_case_01_bodies.py::",
        ),
    },
    "2": {
        "a framework stamps fresh UUIDs on messages and tool calls in every process": (
            "tests/cases/test_case_02_frameworks.py::test_fresh_ids_of_a_framework_are_no_miss",
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
    "3": {
        "recorded once and asked for twice; a change by its path, old and new text; three different words": (
            "tests/cases/test_case_03_words.py::",
            "tests/cases/test_case_03_sdks.py::test_three_words",
        ),
        "neighbour: streams read further, or left earlier": ("tests/cases/test_case_03_streams.py::",),
    },
    "4": {
        "seven events, among them a ping, reasoning and an argument split over three": (
            "tests/cases/test_case_04_streams.py::test_seven_events_come_back_as_seven",
            "tests/cases/test_case_04_anthropic.py::test_every_event_comes_back",
        ),
        "neighbour: every stream of the corpus, in every shape of the wire": (
            "tests/cases/test_case_04_streams.py::test_every_exchange_of_the_corpus",
            "tests/cases/test_case_04_script.py::",
        ),
    },
    "5": {
        "isinstance, with, early close, headers, raw responses and parse, bare, recorded and replayed": (
            "tests/cases/test_case_05_sdk_manners.py::test_the_sdk_behaves_the_same_three_times",
            "tests/cases/test_case_04_anthropic.py::test_left_early_and_raw",
            "tests/adapters/test_sdk_contract.py::",
        ),
    },
    "7": {
        "a timeout cancels the second of three tools, or requests; cancelling twice is harmless": (
            "tests/cases/test_case_07_timeouts.py::test_a_timeout_cancels_the_second_of_three_tools",
            "tests/cases/test_case_07_sdk_timeouts.py::test_the_second_of_three_requests_is_cancelled",
        ),
        "neighbour: the client's own timeout": (
            "tests/cases/test_case_07_sdk_timeouts.py::test_the_timeout_of_the_client_itself",
        ),
    },
    "17": {
        "cached tokens within the input or beside it, reasoning tokens; totals equal a sum by hand": (
            "tests/cases/test_case_17_tokens.py::test_tokens_by_class",
            "tests/cases/test_case_17_tokens.py::test_totals_equal_a_sum_by_hand",
        ),
        "neighbour: a stream without counts": (
            "tests/cases/test_case_17_tokens.py::test_a_stream_without_counts_is_unknown_and_never_zero",
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
    "14": {
        "a new process each time: one charge, four questions, four answers": (
            "tests/cases/test_case_14_until_yes.py::test_one_charge_four_questions_four_answers",
        ),
        "neighbour: resumed before anybody answered": (
            "tests/cases/test_case_14_until_yes.py::test_a_resume_without_an_answer_writes_nothing",
        ),
        "neighbour: answers that are unknown, ambiguous, late, stale, reused, not authorised, against the schema": (
            "tests/api/test_answering.py::",
        ),
        "neighbour: many who answer at once": (
            "tests/store/test_mailbox.py::test_of_twenty_processes_one_wins_and_nineteen_are_told_who",
            "tests/api/test_answering.py::test_of_several_who_answer_at_once_one_wins_and_the_others_are_told_who",
        ),
    },
    "15": {
        "other arguments": (
            "tests/cases/test_case_15_approvals.py::test_other_arguments_are_refused",
            "tests/cases/test_case_15_approvals.py::test_what_is_to_be_approved_cannot_change_behind_the_answer",
        ),
        "a changed tool schema": (
            "tests/cases/test_case_15_approvals.py::test_a_tool_that_takes_other_types_is_refused",
            "tests/cases/test_case_15_approvals.py::test_a_tool_that_is_described_otherwise_is_the_same",
        ),
        "a second click": (
            "tests/cases/test_case_15_approvals.py::test_a_second_click_is_told_of_the_first",
        ),
        "after expiry": (
            "tests/cases/test_case_15_approvals.py::test_a_yes_after_its_time_is_refused",
            "tests/cases/test_case_15_approvals.py::test_a_yes_that_is_used_after_its_time_is_refused",
        ),
        "someone without the role": (
            "tests/cases/test_case_15_approvals.py::test_somebody_without_the_role_is_refused",
        ),
        "the exact call runs once": (
            "tests/cases/test_case_15_approvals.py::test_the_exact_call_runs_once",
            "tests/api/test_grants.py::test_each_refusal_has_words_of_its_own_and_calls_nothing",
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
