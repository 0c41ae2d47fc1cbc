//! Topics and subscriptions (semantics §4, §5, §8, §11, §13, §14).

mod actions;
mod failures;
mod fan_out;
mod forwarding;
mod holding;
mod idle;
mod nothing_lost;
mod rules;
mod scale;

/// Two subscriptions of topic `t`.
const A: &str = "t/Subscriptions/a";
const B: &str = "t/Subscriptions/b";
