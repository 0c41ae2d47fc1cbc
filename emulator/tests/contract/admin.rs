//! The HTTP administration API, as SDKs and Service Bus Explorer use it (admin-http.md).

mod authorization;
mod bodies;
mod fixtures;
mod flowing;
mod observed;
mod paging;
mod paths;
mod properties;
mod queues;
mod rules;
mod topics;
mod validation;
