//! `@azure/service-bus` for JavaScript, on Node.js.

every_case!(crate::driver::Sdk::JavaScript);
