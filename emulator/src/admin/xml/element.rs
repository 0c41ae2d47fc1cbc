//! One element with what is in it.

use super::{ATOM, CONNECT, SCHEMA, SERIALIZATION};

/// Which vocabulary a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::admin) enum Space {
    /// Entries and feeds.
    Atom,
    /// Descriptions of entities.
    Connect,
    /// Types of values.
    Schema,
    /// Types of values that XML Schema has no name for, as .NET calls them.
    Serialization,
    /// Any other, or none.
    Other,
}

/// What `xsi:type` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::admin) struct XsiType {
    pub(in crate::admin) space: Space,
    pub(in crate::admin) name: String,
}

/// An element; comments, instructions and foreign attributes are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::admin) struct Element {
    pub(in crate::admin) space: Space,
    /// Its name without a prefix.
    pub(in crate::admin) name: String,
    pub(in crate::admin) xsi_type: Option<XsiType>,
    /// Whether `xsi:nil` says that it has no value.
    pub(in crate::admin) is_nil: bool,
    /// All its text that stands in no child.
    pub(in crate::admin) text: String,
    pub(in crate::admin) children: Vec<Self>,
}

impl Space {
    pub(super) fn of(namespace: &str) -> Self {
        match namespace {
            ATOM => Self::Atom,
            CONNECT => Self::Connect,
            SCHEMA => Self::Schema,
            SERIALIZATION => Self::Serialization,
            _ => Self::Other,
        }
    }
}

impl Element {
    /// The first child of this name that has a value.
    pub(in crate::admin) fn child(&self, space: Space, name: &str) -> Option<&Self> {
        let mut children = self.children.iter();
        children.find(|child| child.space == space && child.name == name && !child.is_nil)
    }

    /// The same within descriptions of entities.
    pub(in crate::admin) fn part(&self, name: &str) -> Option<&Self> {
        self.child(Space::Connect, name)
    }

    /// All children of this name within descriptions of entities.
    pub(in crate::admin) fn parts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        let is_it = move |child: &&Self| child.space == Space::Connect && child.name == name;
        self.children.iter().filter(is_it)
    }
}
