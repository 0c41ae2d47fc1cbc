//! The REST data plane, request by request (Microsoft's "Service Bus runtime REST").

mod addresses;
mod authorisation;
mod batches;
mod bounds;
mod locks;
mod mapping;
mod receiving;
mod sending;
mod waiting;
