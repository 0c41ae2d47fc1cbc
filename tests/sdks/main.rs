//! Other languages' SDKs against the emulator: `azure-servicebus` for Python, blocking and
//! asynchronous, and `@azure/service-bus` for JavaScript, as their registries publish them.
//!
//! A case is a function of a driver script (`python/cases`, `javascript/cases`) that asserts what
//! its SDK sees. Every case is a test of its own per SDK: it starts a bus, runs the script in the
//! SDK's environment, and then asserts what the broker recorded.
//!
//! The environments are made under `target/sdks` by whichever test comes first, with the pinned
//! versions beside the scripts; that needs `python3`, `node` and `npm`. Where one is missing its
//! tests fail, unless `SERVICEBUS_SKIP_SDKS` (`python`, `javascript` or both, with a comma) says
//! that they may be left out.

#[macro_use]
mod cases;
mod javascript;
mod python;

mod broker_side;
mod driver;
mod environment;
