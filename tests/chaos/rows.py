"""Which test stands for which kind of fault.

F rows are faults that a gateway meets (child process; client, HTTP and protocol; gateway and host), R rows are what
users of other bridges reported, N rows are what was thought of here, T rows are threats. Each is a sentence, and below
it the tests that would fail if it came back: where each is, and its name without `test_`.
"""

from dataclasses import dataclass

from tests.chaos.reported import OWN, REPORTS
from tests.chaos.threats import THREATS


@dataclass(frozen=True)
class Row:
    kind: str
    tests: tuple[tuple[str, str], ...]
    """Each a path from the root of the project, and a name."""


def rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    for block in (_FAULTS + REPORTS + OWN + THREATS).replace("\n    ", "\t").split("\n"):
        if block:
            head, *tests = block.split("\t")
            ident, _, kind = head.partition(" ")
            found[ident] = Row(kind, tuple(_test(*test.split()) for test in tests))
    return found


def _test(place: str, name: str) -> tuple[str, str]:
    folder, _, file = place.partition("/")
    return f"tests/{folder}/test_{file}.py", f"test_{name}"


_FAULTS = """
F01 a command that is missing, not executable or no program
    chaos/starting a_server_that_cannot_be_started_says_why_and_the_others_serve
    cli/commands a_command_that_cannot_be_started_is_78
F02 a server that exits at once
    chaos/starting a_server_that_ends_before_it_is_ready_is_told_with_its_exit_and_its_last_words
    chaos/eras a_server_that_cannot_be_spoken_to_is_unavailable_and_is_not_left_running
F04 a crash between initialize and initialized
    chaos/revival a_crash_between_initialize_and_initialized_costs_nothing
    chaos/children a_crash_at_the_end_of_each_handshake_ends_the_session_in_the_end
F05 a crash with calls in flight
    chaos/revival a_session_outlives_its_child_and_the_next_call_is_served_by_another
    chaos/children a_crash_fails_every_call_in_flight_at_once_and_ends_the_session
    chaos/stateless a_crash_fails_every_call_in_flight_at_once_and_the_next_is_served
    chaos/parked a_child_that_dies_while_a_call_is_parked_fails_the_retry_and_no_other
    live/stateless_bounds the_death_of_a_shared_child_fails_every_call_once_and_the_next_is_served
F06 a crash right after an answer
    chaos/children the_last_line_of_a_crashing_server_is_never_lost
F08 garbage on stdout
    chaos/framing banners_blank_lines_colours_numbers_and_bad_bytes_are_skipped
    chaos/framing too_many_bad_lines_end_the_server_and_its_calls_learn_why
    chaos/framing a_server_that_babbles_from_the_start_is_ended_too
F09 long lines
    chaos/framing long_lines_arrive_whole_and_the_next_is_read
F10 lines over the cap or without end
    chaos/framing lines_over_the_cap_are_borne_a_few_times
    chaos/framing a_line_without_end_costs_no_memory_and_ends_its_server
F11 one byte per write
    chaos/framing text_arrives_intact_however_the_bytes_do
F12 bytes that are no text
    chaos/framing a_line_that_is_no_message_is_dropped_and_the_next_is_read
F14 a server that reads nothing
    chaos/children a_server_that_reads_nothing_costs_a_bounded_queue_and_what_it_never_saw_is_said_not_to_have_run
    chaos/stateless what_a_server_that_reads_nothing_never_saw_is_said_not_to_have_run
F15 a call that is never answered
    chaos/children a_call_that_is_never_answered_times_out_and_the_server_is_told
    chaos/stateless a_call_that_is_never_answered_times_out_and_the_server_is_told
    chaos/parked who_waits_too_long_for_a_child_hears_that_nothing_was_executed
F16 progress for ever
    chaos/children progress_keeps_a_call_alive_until_the_last_deadline
    chaos/stateless progress_keeps_a_call_alive_until_the_last_deadline
F19 a server that asks
    live/protocol a_question_in_mid_call_reaches_the_client_and_its_answer_the_server
    live/protocol a_client_that_cannot_be_asked_is_not
    live/stateless_questions a_question_is_asked_by_a_result_and_answered_by_a_retry
    live/stateless_questions a_client_that_declares_nothing_is_asked_nothing
F20 a flood on stderr
    chaos/children a_flood_on_stderr_blocks_nobody_and_is_logged_in_part
F21 a flood of notifications
    chaos/children a_flood_on_stdout_costs_no_memory_and_no_answer
    chaos/overload servers_that_ask_without_end_slow_nobody_else_down
    chaos/streams a_reader_that_never_reads_costs_a_bounded_queue_and_then_its_connection
    chaos/streams a_reader_that_falls_behind_misses_log_messages_and_never_its_answer
F22 a grandchild that keeps the pipes
    chaos/children a_grandchild_that_holds_the_pipes_hides_no_exit_and_goes_with_its_parent
F24 a server that ignores the end of its input
    chaos/children whoever_will_not_go_is_made_to_step_by_step
F25 a server that ignores SIGTERM
    chaos/children whoever_will_not_go_is_made_to_step_by_step
    chaos/parked a_child_that_will_not_stop_is_not_waited_for
F26 a halted process
    chaos/children a_stopped_process_is_found_out_by_its_silence
    chaos/stateless a_stopped_process_is_found_out_by_its_silence
F27 a process that nobody can end
    upstreams/unkillable one_that_nobody_can_end_is_given_up_in_time_with_an_alarm
    upstreams/unkillable until_it_dies_its_number_stays_its_own
    chaos/unkillable its_session_ends_others_go_on_and_there_is_an_alarm
    chaos/unkillable stateless_calls_are_served_by_another
    chaos/unkillable it_does_not_keep_the_gateway
F28 a crash loop
    chaos/supervision a_server_that_always_ends_backs_off_and_then_is_refused_at_once_and_the_others_serve
    chaos/supervision after_the_cool_down_one_start_is_tried_and_the_server_heals
    chaos/supervision who_crashes_its_own_child_does_not_shut_the_server_for_others
F29 a server that takes all memory
    chaos/limits a_server_that_takes_too_much_memory_dies_alone_and_its_calls_are_told
    chaos/limits little_by_little_is_too_much_as_well
    upstreams/start a_child_is_the_first_to_go_where_memory_runs_out
F30 a fork bomb
    chaos/limits a_fork_bomb_is_confined_and_ends_with_its_session
F33 a client that vanishes in mid-call
    chaos/streams a_call_goes_on_although_its_client_has_gone_and_its_answer_can_be_fetched
    chaos/streams a_client_that_leaves_before_a_quick_answer_disturbs_nobody
F34 a stateless client that vanishes in mid-call
    chaos/stateless a_client_that_vanishes_in_mid_call_cancels_it_at_once_and_nothing_more_is_sent
    live/stateless_closing a_connection_that_closes_before_the_answer_cancels
    live/stateless_closing a_stream_that_is_closed_cancels_its_call_and_no_other
    chaos/parked who_goes_while_waiting_makes_way
F35 a client that closes its half
    chaos/streams a_client_that_closes_its_half_is_answered_nothing_and_harms_nobody
    chaos/stateless a_client_that_vanishes_in_mid_call_cancels_it_at_once_and_nothing_more_is_sent
F36 a slow reader
    chaos/streams a_large_answer_to_a_slow_reader_holds_up_nobody_and_ends_with_its_patience
    chaos/stateless a_reader_that_never_reads_costs_a_bounded_queue_and_its_call
F38 resuming
    chaos/streams however_often_a_connection_breaks_every_event_comes_once_and_in_order
    chaos/resuming a_stream_that_was_silent_through_a_thousand_others_is_resumed
    chaos/resuming who_missed_more_than_a_connection_may_hold_back_hears_it_over_several
    live/streams resuming_says_exactly_what_came_after_and_then_goes_on
F39 resuming too late
    chaos/streams where_an_answer_is_no_longer_kept_its_loss_is_told_and_the_stream_goes_on
    live/streams an_evicted_answer_is_named_as_lost
F40 resuming what belongs to somebody else
    chaos/streams an_event_id_of_another_stream_or_session_or_principal_replays_nothing
F41 a malformed event id
    chaos/streams a_malformed_event_id_is_400
F42 an event id of a stateless request
    chaos/stateless an_event_id_means_nothing_to_a_stateless_request
    chaos/stateless the_event_id_of_a_session_replays_nothing_to_a_stateless_request
F44 one id twice in flight
    chaos/sessions one_id_many_times_in_flight_gets_each_post_its_own_answer
    chaos/sessions a_number_and_its_digits_are_two_ids
    chaos/stateless one_id_many_times_in_flight_gets_each_post_its_own_answer
    live/stateless_crowd twenty_clients_of_both_eras_hear_nothing_but_their_own
F45 an id used again
    chaos/sessions an_id_may_be_used_again_after_its_answer
F46 initialize many times at once
    chaos/sessions initialize_many_times_at_once_opens_as_many_sessions
    chaos/overload a_principal_gets_as_many_sessions_as_it_may_have_and_no_child_more
F47 initialize within a session
    chaos/sessions initialize_within_a_session_is_refused_and_does_no_harm
F49 a request before initialized
    chaos/sessions before_the_server_is_ready_a_ping_is_answered_and_a_call_waits_for_its_turn
F50 an unknown, ended or foreign session
    chaos/sessions unknown_ended_and_foreign_sessions_cannot_be_told_apart
    live/stateless a_session_id_means_nothing_to_a_stateless_request
F51 GET and DELETE without sessions
    live/stateless there_is_nothing_to_get_or_delete_without_sessions
    chaos/http without_a_session_there_is_nothing_to_hear_or_to_end
F53 initialize cancelled
    chaos/sessions initialize_cannot_be_cancelled
F54 DELETE during a call
    chaos/sessions deleting_a_session_gives_its_calls_a_last_word_and_its_child_an_end
F56 bodies too large, lying or without end
    chaos/http a_body_within_the_limit_passes_and_one_over_it_is_413
    chaos/http a_body_that_is_too_large_or_never_complete_is_refused_in_time
F57 heads and bodies that drip in
    chaos/http a_head_that_drips_in_is_cut_off_in_time
    chaos/http a_body_that_is_too_large_or_never_complete_is_refused_in_time
F58 Content-Type and Accept
    chaos/http whatever_form_is_accepted_is_used
    chaos/http only_where_no_form_is_accepted_it_is_406
    chaos/http what_is_not_said_to_be_json_is_415
    chaos/http a_body_that_is_said_to_be_compressed_is_415
    live/stateless accept_is_read_leniently
    live/stateless a_subscription_needs_a_stream
F59 batches
    live/protocol batches_are_answered_where_the_revision_has_them_and_refused_elsewhere
    live/stateless a_batch_and_a_response_are_refused_and_a_notification_is_taken
F60 hostile JSON
    chaos/http hostile_json_is_refused_and_the_server_never_sees_it
    chaos/stateless hostile_json_is_refused_and_the_server_never_sees_it
F61 wrong Host and Origin
    chaos/admission only_known_hosts_are_served_on_any_route
    chaos/admission only_known_origins_are_served_on_any_route
F63 unknown versions
    chaos/http an_unknown_version_is_400_but_never_on_initialize
    live/stateless what_is_refused_says_why_by_code_and_status
F64 headers that do not mirror the body
    live/stateless what_is_refused_says_why_by_code_and_status
    live/stateless a_mirror_that_is_there_twice_is_no_mirror
    chaos/stateless what_is_refused_for_its_headers_or_its_envelope_never_reaches_the_server
F65 methods that there are not, and envelopes that are not whole
    live/stateless what_is_refused_says_why_by_code_and_status
    chaos/stateless what_is_refused_for_its_headers_or_its_envelope_never_reaches_the_server
F66 more sessions and connections than there may be
    chaos/overload a_principal_gets_as_many_sessions_as_it_may_have_and_no_child_more
    chaos/bounds a_principal_that_opens_sessions_without_end_gets_few_and_nobody_else_notices
    chaos/bounds what_is_over_a_bound_is_refused_at_once_by_its_name_and_others_are_served_and_it_heals
    edge/wire_time connections_over_the_cap_are_told_so_and_others_are_served
    chaos/parked one_principal_cannot_park_without_bounds
    live/stateless_bounds other_capabilities_mean_another_child_and_there_are_only_so_many_sets_at_once
F67 a token that is missing, malformed, expired or for somebody else
    auth/jwt what_is_no_good_token_is_refused_for_its_own_reason
    live/tokens every_bad_token_gets_the_same_answer_and_starts_nothing
    chaos/issuers causes_of_401_cannot_be_told_apart_by_the_time_they_take
F68 a token that expires during a stream
    live/tokens an_expired_token_closes_its_streams_and_a_new_one_goes_on_with_them
    live/tokens a_subscription_ends_with_its_result_and_a_call_that_was_let_in_may_finish
    live/tokens a_call_whose_token_expired_is_cancelled_when_its_time_is_over
F69 a token that is revoked during a stream
    live/tokens a_token_that_is_taken_back_is_refused_within_a_second_and_its_streams_close
    live/tokens a_token_that_its_issuer_ends_loses_its_streams_too
    live/tokens a_request_that_was_on_its_way_when_its_token_was_taken_back_is_refused
    live/tokens a_stateless_call_ends_when_its_token_is_taken_back
    live/tokens a_call_of_who_takes_no_stream_ends_when_its_token_is_taken_back
F70 a token whose scopes do not do for one tool
    live/policy what_a_further_scope_would_open_is_answered_with_that_scope
F71 an issuer that goes down
    chaos/issuers while_an_issuer_is_down_its_known_keys_still_admit
    chaos/issuers while_an_issuer_is_down_another_configuration_still_admits_by_its_known_keys
F72 an issuer that was never there
    chaos/issuers an_issuer_that_was_never_reached_makes_nobody_throw_a_token_away
F74 keys that change under load
    chaos/issuers keys_change_under_load_and_nobody_is_refused
    chaos/issuers a_token_that_is_being_verified_is_judged_by_the_configuration_that_comes_meanwhile
F75 SIGTERM while idle
    chaos/stopping asked_to_stop_while_idle_it_ends_at_once_although_streams_are_open
F76 SIGTERM under load
    chaos/stopping asked_to_stop_under_load_it_takes_nothing_new_and_lets_what_runs_finish
    chaos/stopping it_waits_no_longer_than_its_calls_take
    chaos/stopping a_question_can_still_be_answered_while_it_waits_for_the_call_that_asked
    chaos/parked a_gateway_that_stops_finishes_what_runs_and_takes_nothing_new
    chaos/parked a_call_that_outlasts_the_drain_gets_a_last_word
    chaos/parked a_subscription_is_taken_down_in_good_order
    chaos/parked a_parked_call_does_not_keep_the_gateway
F78 SIGKILL
    chaos/escapees a_gateway_that_is_killed_with_two_hundred_sessions_leaves_nobody
    cli/guardian what_children_have_left_dies_with_a_killed_gateway_and_so_does_the_guardian
    cli/guardian a_guardian_that_was_killed_is_replaced_and_the_next_keeps_watch
    chaos/stopping what_a_gateway_that_was_killed_with_its_guardian_left_ends_with_its_input_or_at_the_next_start
F79 a bad configuration while it runs
    live/reload_file a_bad_configuration_is_refused_and_the_one_before_serves_on
    cli/reloading a_refusal_is_logged_once_for_each_content
    chaos/reload fifty_files_a_second_lose_no_call_and_the_last_one_is_what_runs
    chaos/survival a_call_that_was_in_flight_is_answered_on_its_stream_with_what_is_known
    chaos/survival_of_many every_call_that_was_in_flight_has_one_outcome
    chaos/survival_of_many what_was_heard_is_said_again_as_it_was_and_nothing_twice
    chaos/survival_of_many what_was_answered_was_executed_once_and_nothing_was_twice
    chaos/stopping a_killed_gateway_leaves_no_child_behind_and_its_sessions_are_unknown_to_the_next
    chaos/stateless a_killed_gateway_leaves_no_child_and_what_it_sealed_begins_nothing_twice
F80 no file descriptors left
    chaos/bounds what_is_over_a_bound_is_refused_at_once_by_its_name_and_others_are_served_and_it_heals
    chaos/scarcity without_a_descriptor_for_a_connection_the_gateway_neither_spins_nor_fills_its_log
    chaos/scarcity a_session_whose_child_died_waits_where_there_are_no_descriptors_for_another
    chaos/overload without_descriptors_left_a_session_is_refused_and_the_others_go_on
F82 an audit that cannot be written, for the disk is full
    live/audit with_a_full_disk_no_server_hears_of_a_call
    live/audit who_allows_it_goes_on_without_and_counts
    live/audit a_device_that_is_always_full_is_borne_where_that_is_allowed
F83 an audit that is renamed, removed or made read-only
    live/audit calls_are_recorded_where_the_file_is_looked_for
F85 a clock that jumps
    chaos/clock nothing_that_is_timed_ends_sooner_or_later_when_the_clock_jumps
    chaos/clock a_child_is_started_again_in_time_when_the_clock_jumps
    chaos/clock no_age_is_negative_when_the_clock_jumps
    chaos/clock a_token_ends_by_the_clock_and_is_good_again_when_that_goes_back
F88 a gateway that takes too much memory
    chaos/bounds what_is_over_a_bound_is_refused_at_once_by_its_name_and_others_are_served_and_it_heals
    chaos/bounds where_the_machine_gives_little_memory_most_of_it_is_the_bound
F94 proxies that buffer
    chaos/streams every_event_stream_forbids_buffering_and_begins_at_once
    deploy/proxies a_stream_begins_at_once_and_its_comments_are_not_held_back
F95 a port in use, an open gateway
    cli/commands a_port_in_use_is_78_before_anything_starts
    cli/commands an_open_gateway_on_every_address_is_78
F96 a bug of ours
    chaos/stopping a_bug_costs_its_own_session_at_most
    chaos/stopping a_bug_in_a_request_is_an_internal_error_that_tells_nothing
    chaos/stopping a_bug_in_the_keeping_of_time_ends_its_session_and_its_calls_get_a_last_word
    chaos/stopping a_bug_while_a_child_is_started_is_answered_and_stays_alone
    chaos/stateless a_bug_costs_its_own_request_at_most_and_is_counted
"""
