//! `@azure/service-bus` for JavaScript, on Node.js.

every_case!(crate::driver::Sdk::JavaScript);

mod over_tls {
    every_kind_of_link!(crate::driver::Sdk::JavaScript, TLS);
}

// It knows no WebSocket without TLS.
mod over_websocket_and_tls {
    every_kind_of_link!(crate::driver::Sdk::JavaScript, SECURED_WEBSOCKET);
}

// Python's SDK cannot change properties when it settles.
test_of!(deferral_with_properties: crate::driver::Sdk::JavaScript, SETTINGS, deferral { properties });

// Python's SDK peeks whole messages, and has no footers of its own.
test_of!(peek_without_bodies: crate::driver::Sdk::JavaScript, SETTINGS, peek { without_bodies });
test_of!(annotated: crate::driver::Sdk::JavaScript, SETTINGS, send { annotated });

// Of these SDKs this one alone manages rules over AMQP; Python does so over HTTP.
test_of!(topics_rules: crate::driver::Sdk::JavaScript, TOPICS, rules {
    configured, enumerates, pages, takes_effect, action, duplicate, unknown, malformed, not_found,
});

// This SDK can be told not to wait for a session any more.
test_of!(sessions_cancelled: crate::driver::Sdk::JavaScript, SESSIONS, sessions { cancelled });

// That a session is lost is told to a handler; Python has iterators instead.
test_of!(session_locks_of_handlers: crate::driver::Sdk::JavaScript, SESSIONS, session_locks {
    loses_lock_streaming,
});
