//! XML as the admin API uses it: a small tree of what a client wrote, and a writer of what it reads.
//!
//! The tree keeps elements of the namespaces that mean something here; everything else is left out, because clients
//! send back what they did not understand (admin-http.md §4.1).

mod read;
mod write;

pub(crate) use read::read;
pub(crate) use write::Writer;

/// The Atom Syndication Format.
pub(crate) const ATOM: &str = "http://www.w3.org/2005/Atom";
/// Descriptions of entities.
pub(crate) const CONNECT: &str =
    "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
/// The counters in `CountDetails`.
pub(crate) const COUNTS: &str = "http://schemas.microsoft.com/netservices/2011/06/servicebus";
/// `xsi:type` and `xsi:nil`.
pub(crate) const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// The types of values.
pub(crate) const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// The type of durations, as the service writes it.
pub(crate) const SERIALIZATION: &str = "http://schemas.microsoft.com/2003/10/Serialization/";

/// Which vocabulary a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
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
pub(crate) struct XsiType {
    pub(crate) space: Space,
    pub(crate) name: String,
}

/// An element; comments, instructions and foreign attributes are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) space: Space,
    /// Its name without a prefix.
    pub(crate) name: String,
    pub(crate) xsi_type: Option<XsiType>,
    /// Whether `xsi:nil` says that it has no value.
    pub(crate) is_nil: bool,
    /// All its text that stands in no child.
    pub(crate) text: String,
    pub(crate) children: Vec<Self>,
}

impl Space {
    pub(crate) fn of(namespace: &str) -> Self {
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
    pub(crate) fn child(&self, space: Space, name: &str) -> Option<&Self> {
        let mut children = self.children.iter();
        children.find(|child| child.space == space && child.name == name && !child.is_nil)
    }

    /// The same within descriptions of entities.
    pub(crate) fn part(&self, name: &str) -> Option<&Self> {
        self.child(Space::Connect, name)
    }

    /// All children of this name within descriptions of entities.
    pub(crate) fn parts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        let is_it = move |child: &&Self| child.space == Space::Connect && child.name == name;
        self.children.iter().filter(is_it)
    }
}
