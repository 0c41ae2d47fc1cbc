//! Other languages' SDKs against the emulator: `azure-servicebus` for Python, blocking and asynchronous,
//! `@azure/service-bus` for JavaScript, `azservicebus` for Go, `azure-messaging-servicebus` for Java, as their
//! registries publish them, and `Azure.Messaging.ServiceBus` for .NET, from a package of npm. Beside them Proton, a plain
//! AMQP client, through which the matrix of `tests/fidelity` passes, and which works in transactions.
//!
//! A case is a function (in `python/cases`, `javascript/cases`, `go`, `java`, `dotnet`) that asserts what its SDK sees. Every case
//! has a namespace of its own; those of an SDK share a process (`interpreter`), but for receivers that die with a message
//! locked (`detach.dropped`), which are processes within a case, and Java's `connection.closes`, which looks at all
//! threads of its process. When a case has passed, the broker's record is judged too. The cases of one topic are one
//! test per SDK, which names those that failed.
//!
//! `cargo test` runs a few cases of each SDK (`smoke`), and what is not a matrix; the feature `matrices` adds the rest.
//!
//! JMS is in `jms`: Qpid JMS and Microsoft's libraries, beside an embedded Artemis, the control.
//!
//! What runs on top of SDKs is in `frameworks`: kombu and Celery, `gocloud.dev`, Spring Cloud Azure and Apache Camel.
//!
//! What asks for tokens as an unchanged program does is in `identity`; what manages namespaces over Azure Resource Manager
//! in `resources`: `azure-mgmt-servicebus`, `@azure/arm-servicebus` and `az`.
//!
//! The environments are made under `target/sdks` by whichever test comes first, with the pinned
//! versions beside the scripts; that needs `python3`, `node` and `npm`, `go`, a JDK and `mvn`, `mcs` for .NET, and a C compiler for
//! Proton. Where one is missing its tests fail, unless `SERVICEBUS_SKIP_SDKS` (`python`, `javascript`, `go`, `java`,
//! `dotnet`, `az`, `proton`, `celery`, `gocloud`, `spring`, `camel` or several, with commas) says that they may be left out.

#[macro_use]
mod cases;
mod connecting;
mod dotnet;
mod frameworks;
mod go;
mod identity;
mod java;
#[cfg(feature = "matrices")]
mod javascript;
mod jms;
mod proton;
#[cfg(feature = "matrices")]
mod python;
mod readme;
mod resources;
mod smoke;
#[cfg(feature = "matrices")]
mod speed;
#[cfg(feature = "matrices")]
mod trust;

mod broker_side;
#[cfg_attr(
    not(feature = "matrices"),
    expect(dead_code, reason = "settings of which only the matrices make use")
)]
mod driver;
mod environment;
mod interpreter;
mod topology;
mod transport;

use servicebus_test_support::{built, comparison, matrix};
