//! `azservicebus` for Go.

/// Cases of what this SDK has not, or asks for in another way.
pub(crate) const UNSUPPORTED: [&str; 2] = [
    // It renews no lock by itself.
    "session_locks.auto_renewed",
    // Its request for a deferred message names no session, without which a queue of sessions gives none.
    "session_messages.deferred",
];

every_case!(crate::driver::Sdk::Go);

// With a credential it knows nothing but TLS. Over WebSocket the program dials, so that it may do without TLS.
over_every_transport!(
    crate::driver::Sdk::Go,
    every_kind_of_link,
    connection {
        token_credential,
        expired_token
    }
);

test_of!(send_cancelled: crate::driver::Sdk::Go, SETTINGS, send { cancelled });

test_of!(deferral_with_properties: crate::driver::Sdk::Go, SETTINGS, deferral { properties });

// It manages rules over HTTP.
test_of!(topics_rules: crate::driver::Sdk::Go, TOPICS, rules {
    configured, enumerates, pages, takes_effect, action, duplicate, unknown, malformed, not_found,
});

test_of!(sessions_cancelled: crate::driver::Sdk::Go, SESSIONS, sessions { cancelled });

test_of!(session_lists: crate::driver::Sdk::Go, SESSIONS, session_state { listed, listed_by_state });

test_of!(session_without_name: crate::driver::Sdk::Go, SESSIONS, sessions { empty_id });

test_of!(observed: crate::driver::Sdk::Go, OBSERVED, observed {
    dates, nameless_rule, filter_counts, websocket_path, expired_token,
});
