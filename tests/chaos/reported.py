"""Rows of kinds that users of other bridges reported, and of kinds that nobody has reported yet."""

REPORTS = """
R01 a second client, or one that comes back, ends the process
    chaos/sessions sse_clients_come_and_go_without_disturbing_each_other
R02 every client hears what is said to others
    chaos/sessions the_same_ids_in_two_sessions_never_meet
    live/sse two_clients_hear_only_their_own
    live/shared progress_under_one_token_reaches_only_who_asked
    live/stateless_crowd twenty_clients_of_both_eras_hear_nothing_but_their_own
R03 every request has id 1
    chaos/sessions one_id_many_times_in_flight_gets_each_post_its_own_answer
R04 a client that leaves ends the process
    chaos/streams a_call_goes_on_although_its_client_has_gone_and_its_answer_can_be_fetched
    chaos/stateless a_client_that_vanishes_in_mid_call_cancels_it_at_once_and_nothing_more_is_sent
R06 a spawn that fails ends every session
    chaos/starting a_server_that_cannot_be_started_says_why_and_the_others_serve
    chaos/overload without_descriptors_left_a_session_is_refused_and_the_others_go_on
R08 clients of one child are mixed up
    chaos/sessions twenty_clients_of_one_shared_child_each_get_their_own
    live/stateless_crowd twenty_clients_of_both_eras_share_one_child
R09 state is lost between calls
    chaos/children state_stays_within_a_session_and_one_child_serves_it
R11 a child that was started early is used before its handshake
    chaos/warm a_session_takes_a_child_that_was_told_nothing_yet_and_another_is_started
R12 a child for each request without a session
    chaos/flat ten_thousand_sessions_opened_and_abandoned_leave_memory_flat
    chaos/flat sessions_with_children_of_their_own_leave_memory_flat
    chaos/overload aborted_requests_without_a_session_leave_one_child_at_most
    chaos/stateless a_hundred_calls_of_which_some_are_broken_off_leave_no_child
R13 only the shell is killed
    chaos/escapees a_gateway_that_is_stopped_with_two_hundred_sessions_leaves_nobody
    chaos/escapees what_hid_its_tag_is_killed_once_no_child_that_lives_can_have_started_it
    chaos/escapees what_hid_its_tag_is_killed_when_the_gateway_stops_at_the_latest
    chaos/children a_server_behind_a_launcher_goes_with_it
    chaos/children deleting_a_session_ends_all_that_its_server_started
R14 children outlive DELETE
    chaos/escapees two_hundred_deleted_sessions_leave_nobody
    chaos/children deleting_a_session_ends_all_that_its_server_started
    live/stateless_questions children_that_nobody_uses_are_stopped
R16 sessions that nobody ends
    chaos/escapees two_hundred_idle_sessions_leave_nobody
    chaos/escapees two_hundred_clients_that_vanish_leave_nobody
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
    chaos/stateless a_crash_fails_every_call_in_flight_at_once_and_the_next_is_served
R21 a crash before the first answer is waited for
    chaos/escapees two_hundred_handshakes_that_fail_leave_nobody
    chaos/starting a_server_that_ends_before_it_is_ready_is_told_with_its_exit_and_its_last_words
R22 one bad server stops all
    chaos/supervision a_server_that_always_ends_backs_off_and_then_is_refused_at_once_and_the_others_serve
    chaos/starting a_server_that_cannot_be_started_says_why_and_the_others_serve
R23 the gateway outlives its launcher
    cli/serving it_ends_with_its_launcher_where_that_was_asked_for
R24 it will not stop
    chaos/escapees a_gateway_that_is_stopped_with_two_hundred_sessions_leaves_nobody
    chaos/stopping nobody_who_will_not_go_keeps_it_from_ending
R26 cancelling a call kills the server
    live/protocol cancelling_reaches_the_server_under_its_own_id_and_leaves_it_alive
R27 a slow start is begun anew with every try
    chaos/abandoned who_comes_again_and_again_waits_for_one_start
    chaos/abandoned a_start_that_is_over_by_then_waits_for_its_client
    chaos/abandoned nobody_else_takes_it_over
    chaos/starting a_slow_start_goes_on_although_its_client_has_gone_and_keeps_the_connection_warm
R28 an installer asks and waits
    chaos/starting a_server_that_does_not_get_ready_in_time_is_given_up_and_its_last_words_are_told
R29 stderr fills its pipe
    chaos/children a_flood_on_stderr_blocks_nobody_and_is_logged_in_part
R30 a call waits for ever
    chaos/children a_call_that_is_never_answered_times_out_and_the_server_is_told
    chaos/stateless a_call_that_is_never_answered_times_out_and_the_server_is_told
R31 a server that was missing stays missing
    chaos/starting a_command_that_appears_later_is_found_without_a_restart
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
    deploy/proxies a_stream_begins_at_once_and_its_comments_are_not_held_back
R48 idle streams are cut
    chaos/streams quiet_streams_are_kept_warm_by_comments
    deploy/proxies a_stream_begins_at_once_and_its_comments_are_not_held_back
R49 GET without a session
    chaos/http without_a_session_there_is_nothing_to_hear_or_to_end
    live/stateless there_is_nothing_to_get_or_delete_without_sessions
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
    real/behind_nginx a_client_is_asked_and_answers_under_the_sub_path
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
    live/stateless_subscriptions each_list_is_told_of
    live/stateless_subscriptions nobody_hears_of_another_principals_children
R66 questions
    live/protocol a_question_in_mid_call_reaches_the_client_and_its_answer_the_server
    live/protocol a_client_that_cannot_be_asked_is_not
    live/stateless_questions a_question_is_asked_by_a_result_and_answered_by_a_retry
R67 cancellation
    live/protocol cancelling_reaches_the_server_under_its_own_id_and_leaves_it_alive
    chaos/stateless a_client_that_vanishes_in_mid_call_cancels_it_at_once_and_nothing_more_is_sent
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

OWN = """
N01 answers to questions of somebody else, or of nobody
    chaos/hostile an_answer_to_a_question_that_nobody_asked_never_reaches_the_server
    chaos/hostile an_answer_that_comes_after_its_call_was_answered_does_no_harm
N02 two questions under one id
    chaos/hostile two_questions_under_one_id_are_two_questions
N03 a session deleted by many at once
    chaos/hostile of_many_who_delete_a_session_at_once_one_does
N04 a body that is broken off
    chaos/hostile a_body_that_is_broken_off_is_never_acted_on
N05 answers before their calls
    chaos/hostile a_server_cannot_answer_calls_before_they_are_asked
N06 a process that outlives its server and goes on speaking
    chaos/hostile what_outlives_a_server_speaks_for_nobody
N07 a gateway that was halted, or whose loop was held up
    chaos/hostile what_was_answered_while_the_gateway_heard_nothing_is_answered_in_time
    chaos/hostile a_gateway_that_is_halted_between_calls_ends_no_session_and_no_child
    gateway/patient what_has_come_while_the_loop_was_held_up_is_heard_first
N08 everything at once, for a long time
    chaos/soak whatever_strikes_the_history_makes_sense
    chaos/soaking planted_bugs_are_seen
"""
