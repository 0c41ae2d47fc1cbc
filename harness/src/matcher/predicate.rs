//! A question that a test asks in its own words.

use std::{fmt, sync::Arc};

/// A predicate that can be kept and handed on; equal to its clones and to nothing else.
pub struct Predicate<T: ?Sized>(Arc<dyn Fn(&T) -> bool + Send + Sync>);

impl<T: ?Sized> Predicate<T> {
    pub(crate) fn new(predicate: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(predicate))
    }

    /// Asks it about a value.
    pub fn is_true_of(&self, value: &T) -> bool {
        (self.0)(value)
    }
}

impl<T: ?Sized> Clone for Predicate<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> PartialEq for Predicate<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: ?Sized> Eq for Predicate<T> {}

impl<T: ?Sized> fmt::Debug for Predicate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}
