//! The filter language from outside: tables, bounds, look-ups, explanations, fuzzing.

mod actions;
mod explain;
mod fuzz;
mod message;
mod table;
mod whole;
