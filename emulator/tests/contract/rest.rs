//! The REST data plane, request by request (Microsoft's "Service Bus runtime REST").

mod addresses;
mod authorisation;
mod bounds;
mod mapping;
mod receiving;
mod sending;
mod waiting;
