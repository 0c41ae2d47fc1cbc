//! The filter language from outside: tables, bounds, look-ups, explanations.

mod actions;
mod explain;
mod limits;
mod message;
mod table;
mod whole;
