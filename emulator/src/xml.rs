//! XML as the administration API uses it: a small tree of what was written, and a compact writer. The harness is a client of
//! that API with the same two.
//!
//! The tree keeps elements of the namespaces that mean something here; everything else is left out, because clients
//! send back what they did not understand (admin-http.md §4.1).

mod read;

use std::borrow::Cow;

use quick_xml::escape::{escape, partial_escape};

pub use read::{ReadError, read};

/// The Atom Syndication Format.
pub const ATOM: &str = "http://www.w3.org/2005/Atom";
/// Descriptions of entities.
pub const CONNECT: &str = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
/// The counters in `CountDetails`.
pub const COUNTS: &str = "http://schemas.microsoft.com/netservices/2011/06/servicebus";
/// `xsi:type` and `xsi:nil`.
pub const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// The types of values.
pub const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// The type of durations, as the service writes it.
pub const SERIALIZATION: &str = "http://schemas.microsoft.com/2003/10/Serialization/";

/// Which vocabulary a name belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Space {
    /// Entries and feeds.
    Atom,
    /// Descriptions of entities.
    Connect,
    /// Types of values.
    Schema,
    /// Types of values that XML Schema has no name for, as .NET calls them.
    Serialization,
    /// Any other, or none.
    #[default]
    Other,
}

/// What `xsi:type` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XsiType {
    /// The vocabulary of its name.
    pub space: Space,
    /// Its name without a prefix.
    pub name: String,
}

/// An element; comments, instructions and foreign attributes are gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// The vocabulary of its name.
    pub space: Space,
    /// Its name without a prefix.
    pub name: String,
    /// The type that it says it has.
    pub xsi_type: Option<XsiType>,
    /// Whether `xsi:nil` says that it has no value.
    pub is_nil: bool,
    /// All its text that stands in no child.
    pub text: String,
    /// Its children of every vocabulary, in their order.
    pub children: Vec<Self>,
}

impl Space {
    fn of(namespace: &str) -> Self {
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
    /// The first child of this name in any vocabulary that has a value.
    pub fn any(&self, name: &str) -> Option<&Self> {
        let mut children = self.children.iter();
        children.find(|child| child.name == name && !child.is_nil)
    }

    /// The first child of this name that has a value.
    pub fn child(&self, space: Space, name: &str) -> Option<&Self> {
        let mut children = self.children.iter();
        children.find(|child| child.space == space && child.name == name && !child.is_nil)
    }

    /// The same within descriptions of entities.
    pub fn part(&self, name: &str) -> Option<&Self> {
        self.child(Space::Connect, name)
    }

    /// All children of this name within descriptions of entities.
    pub fn parts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        let is_it = move |child: &&Self| child.space == Space::Connect && child.name == name;
        self.children.iter().filter(is_it)
    }
}

/// Compact XML as the service writes it: no declaration, no white space between elements.
#[derive(Debug, Default)]
pub struct Writer(String);

impl Writer {
    /// Begins a document.
    pub fn new() -> Self {
        // What an entry with a queue in it needs.
        Self(String::with_capacity(2048))
    }

    /// Begins an element with attributes, each a name and its value.
    pub fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.begin(name, attributes);
        self.0.push('>');
    }

    /// Ends an element.
    pub fn close(&mut self, name: &str) {
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
    }

    /// An element without content.
    pub fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.begin(name, attributes);
        self.0.push_str("/>");
    }

    /// An element with nothing but text.
    pub fn element(&mut self, name: &str, text: &str) {
        self.typed(name, &[], text);
    }

    /// The same with attributes.
    pub fn typed(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.open(name, attributes);
        self.0.push_str(&partial_escape(legal(text)));
        self.close(name);
    }

    /// An element with its children, as it was read.
    pub fn tree(&mut self, element: &Element) {
        let is = element.xsi_type.as_ref();
        let is = is.map(|is| ("i:type", is.name.as_str()));
        self.open(&element.name, is.as_slice());
        self.0.push_str(&partial_escape(legal(&element.text)));
        for child in &element.children {
            self.tree(child);
        }
        self.close(&element.name);
    }

    /// The document.
    pub fn finish(self) -> String {
        self.0
    }

    fn begin(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.0.push('<');
        self.0.push_str(name);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.0.push_str(&escape(legal(value)));
            self.0.push('"');
        }
    }
}

/// The text with what XML 1.0 has no form for, not even escaped, replaced by U+FFFD.
fn legal(text: &str) -> Cow<'_, str> {
    let is_illegal = |c: char| {
        let is_control = c < ' ' && !matches!(c, '\t' | '\n' | '\r');
        is_control || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    match text.contains(is_illegal) {
        true => text.replace(is_illegal, "\u{fffd}").into(),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_form_in_xml_is_replaced() {
        let mut out = Writer::new();
        out.typed("a", &[("b", "\u{0}")], "x\u{1}\u{ffff}\t\u{1b}");
        assert_eq!(
            out.finish(),
            "<a b=\"\u{fffd}\">x\u{fffd}\u{fffd}\t\u{fffd}</a>"
        );
    }

    #[test]
    fn texts_and_attributes_are_escaped() {
        let mut out = Writer::new();
        out.open("a", &[("b", "\"<'&>")]);
        out.element("c", "<x> & \r\n");
        out.empty("d", &[]);
        out.close("a");
        assert_eq!(
            out.finish(),
            "<a b=\"&quot;&lt;&apos;&amp;&gt;\"><c>&lt;x&gt; &amp; &#13;\n</c><d/></a>"
        );
    }
}
