//! `@azure/service-bus` for JavaScript, on Node.js.

every_case!(crate::driver::Sdk::JavaScript);

mod over_tls {
    every_kind_of_link!(crate::driver::Sdk::JavaScript, TLS);
}

/// With the newest `@azure/core-amqp`, which applications get that have a newer lock file than the SDK.
mod with_newest_amqp {
    use crate::driver::Sdk::JavaScriptNewestAmqp;

    every_case!(JavaScriptNewestAmqp);
    test_of!(annotated: JavaScriptNewestAmqp, SETTINGS, send { annotated });

    mod over_tls {
        every_kind_of_link!(super::JavaScriptNewestAmqp, TLS);
    }

    mod over_websocket_and_tls {
        every_kind_of_link!(super::JavaScriptNewestAmqp, SECURED_WEBSOCKET);
    }
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

test_of!(observed: crate::driver::Sdk::JavaScript, OBSERVED, observed {
    deletes, rule_that_exists, rules_of_dead_letters,
});

// No release deletes batches yet.
test_of!(observed_by_the_beta: crate::driver::Sdk::JavaScriptBeta, OBSERVED, observed {
    deletes_batches, batches_too_large, batches_of_partitions,
});
