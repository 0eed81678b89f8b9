"""Which test stands for which kind of fault.

F rows are faults that a gateway meets (child process; client, HTTP and protocol; gateway and host), R rows are what
users of other bridges reported. Each is a sentence, and below it the tests that would fail if it came back: where
each is, and its name without `test_`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    kind: str
    tests: tuple[tuple[str, str], ...]
    """Each a path from the root of the project, and a name."""


def rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    for block in (_FAULTS + _REPORTS).replace("\n    ", "\t").split("\n"):
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
    chaos/children a_server_that_cannot_be_started_says_why_and_the_others_serve
    cli/commands a_command_that_cannot_be_started_is_78
F02 a server that exits at once
    chaos/children a_server_that_ends_before_it_is_ready_is_told_with_its_exit_and_its_last_words
F04 a crash between initialize and initialized
    chaos/revival a_crash_between_initialize_and_initialized_costs_nothing
    chaos/children a_crash_at_the_end_of_each_handshake_ends_the_session_in_the_end
F05 a crash with calls in flight
    chaos/revival a_session_outlives_its_child_and_the_next_call_is_served_by_another
    chaos/children a_crash_fails_every_call_in_flight_at_once_and_ends_the_session
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
F15 a call that is never answered
    chaos/children a_call_that_is_never_answered_times_out_and_the_server_is_told
F16 progress for ever
    chaos/children progress_keeps_a_call_alive_until_the_last_deadline
F19 a server that asks
    live/protocol a_question_in_mid_call_reaches_the_client_and_its_answer_the_server
    live/protocol a_client_that_cannot_be_asked_is_not
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
F26 a halted process
    chaos/children a_stopped_process_is_found_out_by_its_silence
F28 a crash loop
    chaos/supervision a_server_that_always_ends_backs_off_and_then_is_refused_at_once_and_the_others_serve
    chaos/supervision after_the_cool_down_one_start_is_tried_and_the_server_heals
    chaos/supervision who_crashes_its_own_child_does_not_shut_the_server_for_others
F33 a client that vanishes in mid-call
    chaos/streams a_call_goes_on_although_its_client_has_gone_and_its_answer_can_be_fetched
    chaos/streams a_client_that_leaves_before_a_quick_answer_disturbs_nobody
F35 a client that closes its half
    chaos/streams a_client_that_closes_its_half_is_answered_nothing_and_harms_nobody
F36 a slow reader
    chaos/streams a_large_answer_to_a_slow_reader_holds_up_nobody_and_ends_with_its_patience
F38 resuming
    chaos/streams however_often_a_connection_breaks_every_event_comes_once_and_in_order
    live/streams resuming_says_exactly_what_came_after_and_then_goes_on
F39 resuming too late
    chaos/streams where_an_answer_is_no_longer_kept_its_loss_is_told_and_the_stream_goes_on
    live/streams an_evicted_answer_is_named_as_lost
F40 resuming what belongs to somebody else
    chaos/streams an_event_id_of_another_stream_or_session_or_principal_replays_nothing
F41 a malformed event id
    chaos/streams a_malformed_event_id_is_400
F44 one id twice in flight
    chaos/sessions one_id_many_times_in_flight_gets_each_post_its_own_answer
    chaos/sessions a_number_and_its_digits_are_two_ids
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
F59 batches
    live/protocol batches_are_answered_where_the_revision_has_them_and_refused_elsewhere
F60 hostile JSON
    chaos/http hostile_json_is_refused_and_the_server_never_sees_it
F61 wrong Host and Origin
    chaos/admission only_known_hosts_are_served_on_any_route
    chaos/admission only_known_origins_are_served_on_any_route
F63 unknown versions
    chaos/http an_unknown_version_is_400_but_never_on_initialize
F66 more sessions and connections than there may be
    chaos/overload a_principal_gets_as_many_sessions_as_it_may_have_and_no_child_more
    edge/wire_time connections_over_the_cap_are_told_so_and_others_are_served
F70 a token whose scopes do not do for one tool
    live/policy what_a_further_scope_would_open_is_answered_with_that_scope
F75 SIGTERM while idle
    chaos/stopping asked_to_stop_while_idle_it_ends_at_once_although_streams_are_open
F76 SIGTERM under load
    chaos/stopping asked_to_stop_under_load_it_takes_nothing_new_and_lets_what_runs_finish
    chaos/stopping it_waits_no_longer_than_its_calls_take
    chaos/stopping a_question_can_still_be_answered_while_it_waits_for_the_call_that_asked
F78 SIGKILL
    chaos/survival a_call_that_was_in_flight_is_answered_on_its_stream_with_what_is_known
    chaos/survival_of_many every_call_that_was_in_flight_has_one_outcome
    chaos/survival_of_many what_was_heard_is_said_again_as_it_was_and_nothing_twice
    chaos/survival_of_many what_was_answered_was_executed_once_and_nothing_was_twice
    chaos/stopping a_killed_gateway_leaves_no_child_behind_and_its_sessions_are_unknown_to_the_next
    chaos/stopping what_a_killed_gateways_children_started_ends_with_their_input_or_at_the_next_start
F82 an audit that cannot be written, for the disk is full
    live/audit with_a_full_disk_no_server_hears_of_a_call
    live/audit who_allows_it_goes_on_without_and_counts
    live/audit a_device_that_is_always_full_is_borne_where_that_is_allowed
F83 an audit that is renamed, removed or made read-only
    live/audit calls_are_recorded_where_the_file_is_looked_for
F94 proxies that buffer
    chaos/streams every_event_stream_forbids_buffering_and_begins_at_once
F95 a port in use, an open gateway
    cli/commands a_port_in_use_is_78_before_anything_starts
    cli/commands an_open_gateway_on_every_address_is_78
F96 a bug of ours
    chaos/stopping a_bug_costs_its_own_session_at_most
    chaos/stopping a_bug_in_a_request_is_an_internal_error_that_tells_nothing
    chaos/stopping a_bug_in_the_keeping_of_time_ends_its_session_and_its_calls_get_a_last_word
    chaos/stopping a_bug_while_a_child_is_started_is_answered_and_stays_alone
"""

_REPORTS = """
R01 a second client, or one that comes back, ends the process
    chaos/sessions sse_clients_come_and_go_without_disturbing_each_other
R02 every client hears what is said to others
    chaos/sessions the_same_ids_in_two_sessions_never_meet
    live/sse two_clients_hear_only_their_own
R03 every request has id 1
    chaos/sessions one_id_many_times_in_flight_gets_each_post_its_own_answer
R04 a client that leaves ends the process
    chaos/streams a_call_goes_on_although_its_client_has_gone_and_its_answer_can_be_fetched
R06 a spawn that fails ends every session
    chaos/children a_server_that_cannot_be_started_says_why_and_the_others_serve
    chaos/overload without_descriptors_left_a_session_is_refused_and_the_others_go_on
R08 clients of one child are mixed up
    chaos/sessions twenty_clients_of_one_shared_child_each_get_their_own
R09 state is lost between calls
    chaos/children state_stays_within_a_session_and_one_child_serves_it
R11 a child that was started early is used before its handshake
    chaos/warm a_session_takes_a_child_that_was_told_nothing_yet_and_another_is_started
R12 a child for each request without a session
    chaos/overload aborted_requests_without_a_session_leave_one_child_at_most
R13 only the shell is killed
    chaos/children a_server_behind_a_launcher_goes_with_it
    chaos/children deleting_a_session_ends_all_that_its_server_started
R14 children outlive DELETE
    chaos/children deleting_a_session_ends_all_that_its_server_started
R16 sessions that nobody ends
    chaos/sessions many_sessions_that_nobody_ends_end_by_themselves
    chaos/sessions a_session_whose_id_nobody_ever_names_ends_soon
R17 first requests that race start several children
    chaos/sessions a_client_that_names_no_session_has_one_child_however_many_requests_come_at_once
R18 more children than sessions
    chaos/overload a_principal_gets_as_many_sessions_as_it_may_have_and_no_child_more
    live/shared sessions_share_one_child_and_every_answer_finds_its_way
R20 a child is dead and its session answers errors for ever
    chaos/revival a_session_outlives_its_child_and_the_next_call_is_served_by_another
    chaos/revival who_crashes_its_child_again_and_again_loses_its_session_and_nobody_else_does
    chaos/children a_crash_in_mid_call_is_told_and_a_new_session_starts_anew
R21 a crash before the first answer is waited for
    chaos/children a_server_that_ends_before_it_is_ready_is_told_with_its_exit_and_its_last_words
R22 one bad server stops all
    chaos/supervision a_server_that_always_ends_backs_off_and_then_is_refused_at_once_and_the_others_serve
    chaos/children a_server_that_cannot_be_started_says_why_and_the_others_serve
R23 the gateway outlives its launcher
    cli/serving it_ends_with_its_launcher_where_that_was_asked_for
R24 it will not stop
    chaos/stopping nobody_who_will_not_go_keeps_it_from_ending
R26 cancelling a call kills the server
    live/protocol cancelling_reaches_the_server_under_its_own_id_and_leaves_it_alive
R27 a slow start is begun anew with every try
    chaos/abandoned who_comes_again_and_again_waits_for_one_start
    chaos/abandoned a_start_that_is_over_by_then_waits_for_its_client
    chaos/abandoned nobody_else_takes_it_over
    chaos/children a_slow_start_goes_on_although_its_client_has_gone_and_keeps_the_connection_warm
R28 an installer asks and waits
    chaos/children a_server_that_does_not_get_ready_in_time_is_given_up_and_its_last_words_are_told
R29 stderr fills its pipe
    chaos/children a_flood_on_stderr_blocks_nobody_and_is_logged_in_part
R30 a call waits for ever
    chaos/children a_call_that_is_never_answered_times_out_and_the_server_is_told
R31 a server that was missing stays missing
    chaos/children a_command_that_appears_later_is_found_without_a_restart
R32 long answers
    chaos/framing long_lines_arrive_whole_and_the_next_is_read
R34 characters cut in two
    chaos/framing text_arrives_intact_however_the_bytes_do
R35 banners
    chaos/framing banners_blank_lines_colours_numbers_and_bad_bytes_are_skipped
R37 a buffered stdout
    chaos/children a_child_sees_a_clean_environment_and_no_descriptor_of_ours
R38 a line without end
    chaos/framing a_line_without_end_costs_no_memory_and_ends_its_server
R39 id null
    chaos/http hostile_json_is_refused_and_the_server_never_sees_it
R41 batches in the wrong revision
    live/protocol batches_are_answered_where_the_revision_has_them_and_refused_elsewhere
R42 an answer to a notification
    chaos/http a_notification_and_a_reply_get_an_empty_202
R43 an unknown session is no 404
    chaos/sessions unknown_ended_and_foreign_sessions_cannot_be_told_apart
    chaos/sessions where_it_is_so_configured_a_request_without_a_session_is_400
R44 old sessions after a restart
    chaos/survival an_old_session_is_served_by_a_child_that_is_started_when_somebody_wants_it
    chaos/survival_of_many every_old_session_is_served_and_every_stream_comes_to_an_end
    chaos/stopping a_killed_gateway_leaves_no_child_behind_and_its_sessions_are_unknown_to_the_next
R45 clients that never echo the session id
    chaos/sessions a_client_that_never_echoes_the_session_id_is_served_after_its_handshake
R46 streams that an edge holds back
    chaos/streams every_event_stream_forbids_buffering_and_begins_at_once
R48 idle streams are cut
    chaos/streams quiet_streams_are_kept_warm_by_comments
R49 GET without a session
    chaos/http without_a_session_there_is_nothing_to_hear_or_to_end
R50 probing clients
    chaos/admission everything_unknown_is_404_in_json
    chaos/http the_two_paths_of_http_sse_take_one_method_each
R51 strict Accept
    chaos/http whatever_form_is_accepted_is_used
R52 the version header
    chaos/http any_known_version_may_be_named_whatever_was_negotiated
    chaos/http an_unknown_version_is_400_but_never_on_initialize
R53 a constant protocol version
    live/protocol the_servers_own_greeting_reaches_the_client_unchanged
R54 DNS rebinding
    chaos/admission only_known_hosts_are_served_on_any_route
R55 redirects
    chaos/admission both_spellings_answer_directly
R57 browsers
    chaos/admission a_browser_may_ask_first_without_a_token_and_hears_what_it_may_send
    chaos/admission a_browser_can_read_every_answer_also_a_refusal
R58 well-known paths
    chaos/admission everything_unknown_is_404_in_json
R59 the challenge
    chaos/admission every_cause_of_401_looks_the_same_on_every_path
R60 tokens in URLs
    chaos/admission a_token_in_the_query_is_refused_with_or_without_one_in_the_header
    chaos/admission a_token_in_the_path_opens_nothing
R61 unprotected routes
    chaos/admission every_cause_of_401_looks_the_same_on_every_path
    chaos/admission health_needs_no_token_and_tells_no_secret
R62 large bodies
    chaos/http a_body_within_the_limit_passes_and_one_over_it_is_413
R63 secrets in logs
    chaos/admission nothing_secret_is_logged_wherever_it_was_put
    chaos/children no_payload_is_logged_whatever_becomes_of_it
R64 cursors
    live/protocol every_page_of_every_list_is_reachable
R65 news
    chaos/streams each_kind_of_news_comes_once_and_only_to_its_own_session
    live/shared changes_reach_everybody_and_updates_subscribers_only
R66 questions
    live/protocol a_question_in_mid_call_reaches_the_client_and_its_answer_the_server
    live/protocol a_client_that_cannot_be_asked_is_not
R67 cancellation
    live/protocol cancelling_reaches_the_server_under_its_own_id_and_leaves_it_alive
R71 an event store without bounds
    chaos/streams a_thousand_large_answers_are_not_kept
R74 the environment
    chaos/children a_child_sees_a_clean_environment_and_no_descriptor_of_ours
R77 clients that reopen GET in a loop, and both transports at once
    chaos/streams reopening_the_get_stream_over_and_over_leaves_nothing_behind
    chaos/streams a_get_stream_that_is_closed_by_us_ends_no_session
    chaos/sessions both_transports_serve_at_once
R79 listening on every interface
    cli/commands an_open_gateway_on_every_address_is_78
"""
