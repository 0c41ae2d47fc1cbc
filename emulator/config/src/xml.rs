//! The XML of the administration API: a small tree of parsed elements, and a compact writer. The emulator and the harness, a
//! client of that API, share both.
//!
//! The tree keeps elements of the namespaces that have a meaning here and ignores all others, because clients send back what
//! they do not understand (admin-http.md §4.1).
//!
//! Parsing is bounded: the caller limits the body's size, this module limits depth and number of elements, and only the five
//! predefined entities are expanded. A document type declaration is rejected, so that there are no others.

use std::borrow::Cow;

use quick_xml::escape::{escape, partial_escape};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{QName, ResolveResult};
use quick_xml::{NsReader, XmlVersion};
use thiserror::Error;

/// The Atom Syndication Format.
pub const ATOM: &str = "http://www.w3.org/2005/Atom";
/// The descriptions of entities.
pub const CONNECT: &str = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
/// The counters in `CountDetails`.
pub const COUNTS: &str = "http://schemas.microsoft.com/netservices/2011/06/servicebus";
/// `xsi:type` and `xsi:nil`.
pub const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// The types of values.
pub const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// The type of durations, as the service writes it.
pub const SERIALIZATION: &str = "http://schemas.microsoft.com/2003/10/Serialization/";

/// The vocabulary of a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Space {
    /// Entries and feeds.
    Atom,
    /// Descriptions of entities.
    Connect,
    /// Types of values.
    Schema,
    /// Types without a name in XML Schema, as .NET calls them.
    Serialization,
    /// Any other, or none.
    #[default]
    Other,
}

/// The value of `xsi:type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XsiType {
    /// The vocabulary of its name.
    pub space: Space,
    /// Its name without a prefix.
    pub name: String,
}

/// An element, without comments, instructions and foreign attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// The vocabulary of its name.
    pub space: Space,
    /// Its name without a prefix.
    pub name: String,
    /// Its `xsi:type`.
    pub xsi_type: Option<XsiType>,
    /// Whether `xsi:nil` marks it as without a value.
    pub is_nil: bool,
    /// Its text outside of children.
    pub text: String,
    /// Its children of every vocabulary, in order.
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
    /// Returns the first child with this name in any vocabulary that has a value.
    pub fn any(&self, name: &str) -> Option<&Self> {
        let mut children = self.children.iter();
        children.find(|child| child.name == name && !child.is_nil)
    }

    /// Returns the first child with this name that has a value.
    pub fn child(&self, space: Space, name: &str) -> Option<&Self> {
        let mut children = self.children.iter();
        children.find(|child| child.space == space && child.name == name && !child.is_nil)
    }

    /// Returns the first such child in the vocabulary of entity descriptions.
    pub fn part(&self, name: &str) -> Option<&Self> {
        self.child(Space::Connect, name)
    }

    /// Returns all children with this name in the vocabulary of entity descriptions.
    pub fn parts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        let is_it = move |child: &&Self| child.space == Space::Connect && child.name == name;
        self.children.iter().filter(is_it)
    }
}

/// Writes compact XML like the service's: no declaration, no white space between elements.
#[derive(Debug, Default)]
pub struct Writer(String);

impl Writer {
    /// Begins a document.
    pub fn new() -> Self {
        // Enough for an entry with a queue.
        Self(String::with_capacity(2048))
    }

    /// Starts an element with attributes, as pairs of name and value.
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

    /// Writes an element without content.
    pub fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.begin(name, attributes);
        self.0.push_str("/>");
    }

    /// Writes an element that contains only text.
    pub fn element(&mut self, name: &str, text: &str) {
        self.typed(name, &[], text);
    }

    /// Writes an element with attributes and text.
    pub fn typed(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.open(name, attributes);
        self.0.push_str(&partial_escape(legal(text)));
        self.close(name);
    }

    /// Writes an element with its children, as it was parsed.
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

    /// Returns the document.
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

/// Replaces characters that XML 1.0 cannot represent, even escaped, by U+FFFD.
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

/// The maximum depth of elements; descriptions need eight levels.
const MAX_DEPTH: usize = 32;
/// The maximum number of elements; a description with every list full has a few hundred.
const MAX_ELEMENTS: usize = 10_000;

/// Why a body cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The offset of the first byte that is not UTF-8.
    #[error("it is not UTF-8: the byte at offset {0} is not text")]
    NotUtf8(usize),
    /// The XML is malformed.
    #[error("it is malformed at offset {offset}: {reason}")]
    Malformed {
        /// The offset in bytes.
        offset: u64,
        /// The reason.
        reason: String,
    },
    /// A document type declaration.
    #[error("it has a document type, which is not allowed")]
    DocumentType,
    /// A reference to an unknown entity.
    #[error("it refers to the entity '{0}'; allowed are amp, lt, gt, quot, apos and numbers")]
    Entity(String),
    /// A character that XML does not allow.
    #[error("it has the character U+{0:04X}, which XML does not allow")]
    Character(u32),
    /// Too many levels of elements.
    #[error("it nests deeper than {MAX_DEPTH} elements")]
    TooDeep,
    /// Too many elements.
    #[error("it has more than {MAX_ELEMENTS} elements")]
    TooMany,
    /// There is not exactly one root element.
    #[error("it has no element, or more than one outside of any other")]
    NotOneRoot,
}

/// Parses a document.
pub fn read(body: &[u8]) -> Result<Element, ReadError> {
    let text = std::str::from_utf8(body);
    let text = text.map_err(|error| ReadError::NotUtf8(error.valid_up_to()))?;
    let mut reader = NsReader::from_str(text);
    let mut tree = Tree::default();
    loop {
        let event = reader.read_event();
        let malformed = |reason: String| ReadError::Malformed {
            offset: reader.error_position(),
            reason,
        };
        match event.map_err(|error| malformed(error.to_string()))? {
            Event::Start(start) => {
                let element = element(&reader, &start).map_err(malformed)?;
                tree.open(element)?;
            }
            Event::Empty(start) => {
                let element = element(&reader, &start).map_err(malformed)?;
                tree.open(element)?;
                tree.close()?;
            }
            Event::End(_) => tree.close()?,
            Event::Text(text) => tree.text(&text.xml10_content())?,
            Event::CData(text) => tree.text(&text.xml10_content())?,
            Event::GeneralRef(reference) => tree.text(&referred(&reference)?)?,
            Event::DocType(_) => return Err(ReadError::DocumentType),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => return tree.root(),
        }
    }
}

/// The open elements, the outermost first.
#[derive(Default)]
struct Tree {
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl Tree {
    fn open(&mut self, element: Element) -> Result<(), ReadError> {
        self.elements += 1;
        if self.elements > MAX_ELEMENTS {
            return Err(ReadError::TooMany);
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(ReadError::TooDeep);
        }
        self.open.push(element);
        Ok(())
    }

    fn close(&mut self) -> Result<(), ReadError> {
        let element = self.open.pop().ok_or(ReadError::NotOneRoot)?;
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None if self.root.is_some() => return Err(ReadError::NotOneRoot),
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), ReadError> {
        if let Some(wrong) = text.chars().find(|&c| !is_allowed(c)) {
            return Err(ReadError::Character(wrong.into()));
        }
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() || text == "\u{feff}" => {}
            None => return Err(ReadError::NotOneRoot),
        }
        Ok(())
    }

    fn root(self) -> Result<Element, ReadError> {
        let is_whole = self.open.is_empty();
        self.root.filter(|_| is_whole).ok_or(ReadError::NotOneRoot)
    }
}

fn element(reader: &NsReader<&[u8]>, start: &BytesStart<'_>) -> Result<Element, String> {
    let (space, name) = reader.resolver().resolve_element(start.name());
    let mut element = Element {
        space: known(&space)?,
        name: name.as_ref().to_owned(),
        xsi_type: None,
        is_nil: false,
        text: String::new(),
        children: Vec::new(),
    };
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let (space, name) = reader.resolver().resolve_attribute(attribute.key);
        if !matches!(space, ResolveResult::Bound(space) if space.as_ref() == INSTANCE) {
            continue;
        }
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|error| error.to_string())?;
        match name.as_ref() {
            "nil" => element.is_nil = matches!(value.trim(), "true" | "1"),
            "type" => element.xsi_type = Some(xsi_type(reader, value.trim())?),
            _ => {}
        }
    }
    Ok(element)
}

/// Parses the value of `xsi:type` with the declared prefixes.
fn xsi_type(reader: &NsReader<&[u8]>, text: &str) -> Result<XsiType, String> {
    let name = QName(text);
    let prefix = name.prefix();
    let space = reader.resolver().resolve_prefix(prefix, true);
    Ok(XsiType {
        space: known(&space)?,
        name: name.local_name().as_ref().to_owned(),
    })
}

fn known(space: &ResolveResult<'_>) -> Result<Space, String> {
    match space {
        ResolveResult::Bound(space) => Ok(Space::of(space.as_ref())),
        ResolveResult::Unbound => Ok(Space::Other),
        ResolveResult::Unknown(prefix) => Err(format!("the prefix '{prefix}' is not declared")),
    }
}

/// Returns the character of a reference.
fn referred(reference: &BytesRef<'_>) -> Result<String, ReadError> {
    let name = reference.xml10_content();
    let unknown = || ReadError::Entity(name.chars().take(32).collect());
    match reference.resolve_char_ref() {
        Ok(Some(character)) => Ok(character.into()),
        Ok(None) => {
            let text = quick_xml::escape::resolve_xml_entity(&name);
            text.map(str::to_owned).ok_or_else(unknown)
        }
        Err(_) => Err(unknown()),
    }
}

/// Returns whether XML 1.0 allows a character.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_not_allowed_in_xml_are_replaced() {
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

    #[test]
    fn names_are_resolved_by_namespace_and_not_by_prefix() {
        let text = format!(
            "<?xml version='1.0'?>\n<ns0:entry xmlns:ns0=\"{}\"><ns0:content>\
     <QueueDescription xmlns=\"{CONNECT}\" xmlns:p4=\"{INSTANCE}\">\
     <a p4:nil=\"true\"/><b p4:type=\"l28:string\" xmlns:l28=\"{}\">x &amp; <!-- no -->&#x41;<![CDATA[<]]></b>\
     <c p4:type=\"SqlFilter\"/><x:d xmlns:x=\"urn:other\"/></QueueDescription></ns0:content></ns0:entry>",
            ATOM, SCHEMA,
        );
        let root = read(text.as_bytes()).unwrap();
        assert_eq!((root.space, root.name.as_str()), (Space::Atom, "entry"));
        let content = root.child(Space::Atom, "content").unwrap();
        let description = content.part("QueueDescription").unwrap();
        assert_eq!(description.part("a"), None, "nil is nothing");
        assert_eq!(description.part("d"), None, "another vocabulary's");
        let b = description.part("b").unwrap();
        assert_eq!(b.text, "x & A<");
        let expected = XsiType {
            space: Space::Schema,
            name: "string".into(),
        };
        assert_eq!(b.xsi_type, Some(expected));
        let c = description.part("c").unwrap().xsi_type.as_ref().unwrap();
        assert_eq!((c.space, c.name.as_str()), (Space::Connect, "SqlFilter"));
    }

    #[test]
    fn malformed_and_incomplete_documents_are_refused() {
        for text in [
            "",
            "text",
            "<a>",
            "</a>",
            "<a></b>",
            "<a/><b/>",
            "<a/>text",
            "<a b=1/>",
            "<a b='1' b='2'/>",
            "<p:a/>",
            "<a xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:type='p:string'/>",
            "<a",
            "<a>&",
            "<a>&lt</a>",
            "{}",
        ] {
            let refused = read(text.as_bytes());
            assert!(
                matches!(
                    refused,
                    Err(ReadError::Malformed { .. } | ReadError::NotOneRoot)
                ),
                "{text}: {refused:?}"
            );
        }
        assert_eq!(read(b"<a>\xff</a>"), Err(ReadError::NotUtf8(3)));
        assert_eq!(read(b"<a>&#1;</a>"), Err(ReadError::Character(1)));
        assert_eq!(
            read("<a>\u{1}</a>".as_bytes()),
            Err(ReadError::Character(1))
        );
    }

    #[test]
    fn entities_are_never_expanded() {
        let bomb = "<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>";
        assert_eq!(read(bomb.as_bytes()), Err(ReadError::DocumentType));
        for (text, name) in [("<a>&b;</a>", "b"), ("<a>&#xD800;</a>", "#xD800")] {
            assert_eq!(read(text.as_bytes()), Err(ReadError::Entity(name.into())));
        }
    }

    #[test]
    fn depth_and_number_of_elements_are_limited() {
        let nested = |depth: usize| "<a>".repeat(depth) + &"</a>".repeat(depth);
        assert!(read(nested(MAX_DEPTH).as_bytes()).is_ok());
        let deep = nested(MAX_DEPTH + 1);
        assert_eq!(read(deep.as_bytes()), Err(ReadError::TooDeep));
        let many = format!("<a>{}</a>", "<b/>".repeat(MAX_ELEMENTS));
        assert_eq!(read(many.as_bytes()), Err(ReadError::TooMany));
    }
}
