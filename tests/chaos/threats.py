"""Which test stands for which threat: what somebody may try who reaches the gateway, or a server that it starts.

As in `rows`: a sentence, and below it the tests that would fail if it came back. What a server says of its tools is
not judged: it may change its mind, and write to the model what it likes.
"""

THREATS = """
T01 to take over somebody else's session
    chaos/sessions unknown_ended_and_foreign_sessions_cannot_be_told_apart
    chaos/sessions an_endpoint_of_http_sse_is_its_owners_alone
    chaos/streams an_event_id_of_another_stream_or_session_or_principal_replays_nothing
    live/tokens a_session_belongs_to_issuer_subject_and_client
    auth/sealing it_is_of_no_use_for_anybody_or_anything_else
T02 to hear what was said to another client with the same id
    chaos/sessions twenty_clients_of_one_shared_child_each_get_their_own
    chaos/sessions the_same_ids_in_two_sessions_never_meet
    live/stateless_crowd twenty_clients_of_both_eras_share_one_child
T03 to lead a browser here by another name
    chaos/admission only_known_hosts_are_served_on_any_route
    chaos/admission only_known_origins_are_served_on_any_route
    edge/oauth no_place_at_all_serves_a_wrong_host_or_origin
T04 to come in by a route, a transport or an era that was left open
    edge/oauth every_place_but_the_open_ones_wants_a_token_for_itself
    edge/oauth no_place_is_reached_with_too_little_scope
    live/policy what_a_further_scope_would_open_is_answered_with_that_scope
    live/policy every_way_to_a_server_is_closed_to_who_may_use_nothing_of_it
T05 to be let in because the check of a token failed
    auth/authentication whatever_goes_wrong_nobody_is_let_in
    edge/oauth whatever_goes_wrong_the_endpoint_is_not_reached
T06 to be let in by a header, or by a secret that everybody knows
    edge/oauth no_header_stands_in_for_a_token_or_a_host
    edge/oauth it_is_of_the_public_url_whatever_the_request_says
    auth/tokens fresh_tokens_hold_256_random_bits_and_differ
    auth/tokens without_entries_nobody_is_let_in
T07 to use a token that is for somewhere else
    auth/jwt what_is_no_good_token_is_refused_for_its_own_reason
    live/tokens every_bad_token_gets_the_same_answer_and_starts_nothing
    live/tokens a_token_for_one_endpoint_is_none_for_another
T08 to have the gateway's or another client's authority lent to a server
    live/credentials the_bearer_token_reaches_no_child
    live/credentials stateless_requests_meet_only_their_own_on_a_child
    edge/oauth nor_is_there_anything_else_where_one_is
T09 to have the gateway ask what only it can reach
    auth/outbound a_private_address_is_private_in_every_disguise
    auth/outbound no_private_host_is_asked_unless_it_is_allowed
    auth/outbound a_host_with_one_private_address_among_others_is_not_asked
    auth/outbound a_host_is_resolved_once_and_asked_where_that_led
    auth/outbound a_redirect_is_an_answer_and_nobody_follows_it
T10 to call what no list shows
    live/policy only_tools_that_say_that_they_only_read_are_there_for_who_may_only_read
    live/policy what_is_denied_is_like_what_does_not_exist
    live/policy methods_that_we_do_not_know_are_for_who_may_do_everything
T11 to have another command run, or with other arguments
    gateway/bound whatever_a_client_says_changes_only_what_the_operator_named
    gateway/bound where_nothing_is_named_nothing_a_client_says_is_looked_at
    config/servers what_is_wrong_with_a_server_is_one_sentence
    config/reading a_file_that_is_too_open_is_warned_about
T12 a server that reads the gateway's environment
    upstreams/start a_child_gets_the_clean_environment_and_a_tag_and_nothing_else
    cli/hardening secrets_are_taken_out_of_the_environment_and_kept_in_a_copy
T13 a server that looks into the gateway's process
    cli/hardening a_server_of_the_same_user_can_read_nothing_of_the_gateway
    cli/hardening a_serving_gateway_is_closed_to_who_is_of_its_user
    cli/hardening a_server_that_is_only_checked_can_read_nothing_of_who_checks_it
    cli/hardening root_is_refused_where_strangers_reach_servers
T14 a server that becomes another user
    upstreams/start a_child_leads_a_session_of_its_own_and_may_gain_nothing
T15 a server that finds open descriptors
    upstreams/start a_child_holds_three_descriptors_and_none_of_ours
T16 a server that multiplies
    chaos/limits a_fork_bomb_is_confined_and_ends_with_its_session
T17 to read secrets in a log, or to forge its lines
    live/credentials no_secret_is_anywhere_in_logs_metrics_errors_or_audit
    chaos/admission nothing_secret_is_logged_wherever_it_was_put
    telemetry/logs text_fields_cannot_be_forged
    upstreams/stderr what_is_no_text_and_what_would_move_a_cursor_is_made_visible
T18 heads that are huge, and heads and bodies that never end
    edge/wire a_header_of_100_mb_is_never_held
    edge/wire_time a_head_that_drips_in_is_refused_in_time_whatever_its_progress
    edge/wire_time a_body_that_drips_in_is_the_applications_to_refuse_in_time_whatever_its_progress
    edge/wire_time connections_over_the_cap_are_told_so_and_others_are_served
T19 to have a proxy and the gateway read one request in two ways
    edge/wire a_head_that_can_be_read_in_two_ways_is_refused_and_reaches_nobody
    edge/wire a_body_whose_end_is_in_doubt_is_refused_and_never_whole
    edge/wire nothing_that_follows_a_refused_request_is_read
    edge/wire trailers_never_become_headers
    edge/heads what_is_judged_by_itself_and_there_twice_is_refused
T20 JSON that is too deep
    protocol/border depth_beyond_all_measure_is_refused
    chaos/http hostile_json_is_refused_and_the_server_never_sees_it
T21 JSON with a key that is there twice
    chaos/http of_a_key_written_twice_the_server_sees_the_one_that_we_judged
    live/policy policy_and_server_read_the_same_name
T22 JSON with a key in another case
    protocol/aims what_goes_on_can_be_read_in_one_way
    chaos/http hostile_json_is_refused_and_the_server_never_sees_it
T23 JSON with numbers that are none, or that change
    protocol/jsonrpc_hostile an_id_that_cannot_be_given_back_is_refused
    protocol/jsonrpc_hostile broken_json_is_malformed_wherever_it_stands
    protocol/jsonrpc params_are_carried_byte_for_byte
T24 JSON that is no text, or more than one line
    protocol/jsonrpc_hostile what_is_not_one_json_text_is_malformed
    protocol/border what_is_not_utf8_is_refused_wherever_it_stands
    protocol/jsonrpc a_line_has_no_line_break_in_it_and_says_the_same
T25 JSON that takes long to read
    chaos/http the_costliest_body_holds_up_nobody
    chaos/http a_batch_of_very_many_is_refused_and_holds_up_nobody
    protocol/border no_nesting_makes_the_check_slow
T26 headers that say something else than the body
    live/stateless what_is_refused_says_why_by_code_and_status
    live/stateless a_mirror_that_is_there_twice_is_no_mirror
    chaos/stateless what_is_refused_for_its_headers_or_its_envelope_never_reaches_the_server
T27 a flood of sessions
    chaos/bounds a_principal_that_opens_sessions_without_end_gets_few_and_nobody_else_notices
    chaos/overload a_principal_gets_as_many_sessions_as_it_may_have_and_no_child_more
T28 a server that writes events of its own into a stream
    protocol/jsonrpc a_line_break_in_a_method_or_an_id_is_escaped
    live/sse a_payload_passes_byte_for_byte
    protocol/jsonrpc a_pretty_printed_payload_becomes_one_line
T29 a server that goes on talking to a client that is gone
    chaos/streams a_reader_that_never_reads_costs_a_bounded_queue_and_then_its_connection
    chaos/stateless a_client_that_vanishes_in_mid_call_cancels_it_at_once_and_nothing_more_is_sent
    chaos/overload servers_that_ask_without_end_slow_nobody_else_down
T30 a flood of keys that nobody knows
    chaos/issuers a_flood_of_unknown_keys_is_refused_cheaply_and_good_tokens_do_not_notice
T31 to learn from an answer why a token was refused
    live/tokens every_bad_token_gets_the_same_answer_and_starts_nothing
    chaos/issuers causes_of_401_cannot_be_told_apart_by_the_time_they_take
T32 to keep others from being let in, by tokens that are none
    auth/introspection tokens_that_the_endpoint_objects_to_do_not_keep_it_from_being_asked_about_others
    auth/introspection a_crowd_of_strangers_does_not_keep_those_who_are_known_from_their_turn
    auth/authentication what_no_issuer_could_have_made_is_asked_about_nowhere
T33 to go on with what a token opened when that is over
    live/tokens an_expired_token_closes_its_streams_and_a_new_one_goes_on_with_them
    live/tokens a_stream_whose_request_came_slowly_ends_with_its_token_too
"""
