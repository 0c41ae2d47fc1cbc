//! `@azure/service-bus` for JavaScript, on Node.js.

every_case!(crate::driver::Sdk::JavaScript);

// Python's SDK cannot change properties when it settles.
test_of!(deferral_with_properties: crate::driver::Sdk::JavaScript, SETTINGS, deferral { properties });
