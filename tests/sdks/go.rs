//! `azservicebus` for Go: the cases of the other SDKs that are about what this one does in a way of its own, refused
//! attaches above all.

test_of!(send: crate::driver::Sdk::Go, SETTINGS, send { single, batch, properties });
test_of!(receive: crate::driver::Sdk::Go, SETTINGS, receive { peek_lock, receive_and_delete });
test_of!(settle: crate::driver::Sdk::Go, SETTINGS, settle { completes, abandons, dead_letters });
test_of!(locks: crate::driver::Sdk::Go, SETTINGS, locks { renews, loses_lock });
test_of!(peek: crate::driver::Sdk::Go, SETTINGS, peek { states });
test_of!(scheduling: crate::driver::Sdk::Go, SETTINGS, scheduling {
    annotated, by_request, cancelled,
});
test_of!(deferral: crate::driver::Sdk::Go, SETTINGS, deferral { by_number, not_found });
test_of!(duplicates: crate::driver::Sdk::Go, SETTINGS, duplicates { dropped });
test_of!(limits: crate::driver::Sdk::Go, SETTINGS, limits { too_large });
test_of!(not_found: crate::driver::Sdk::Go, SETTINGS, not_found {
    sender, receiver, dead_letters, peek,
});
test_of!(refusals: crate::driver::Sdk::Go, SETTINGS, refusals { wrong_key, to_dead_letters });
test_of!(sessions: crate::driver::Sdk::Go, SESSIONS, sessions {
    by_id, next_available, times_out, taken, plain_receiver, empty_id,
});
test_of!(session_locks: crate::driver::Sdk::Go, SESSIONS, session_locks { renews, loses_lock });
test_of!(session_state: crate::driver::Sdk::Go, SESSIONS, session_state {
    set_and_read, cleared, listed,
});
test_of!(topics: crate::driver::Sdk::Go, TOPICS, topics { fans_out, filtered });
test_of!(admin: crate::driver::Sdk::Go, TOPICS, admin { queues, topics, rules, missing });
test_of!(over_tls: crate::driver::Sdk::Go, TLS, send { single, batch, properties });
test_of!(over_websocket_and_tls: crate::driver::Sdk::Go, SECURED_WEBSOCKET, send {
    single, batch, properties,
});
test_of!(by_token: crate::driver::Sdk::Go, TLS, connection { token });
