//! From the bytes of a body to a tree.
//!
//! Bounded in every direction: the body's size by who reads it, depth and number of elements here, and no entity is
//! expanded but the five of XML itself. A document type is refused, so that there are no others.

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{QName, ResolveResult};
use quick_xml::{NsReader, XmlVersion};
use thiserror::Error;

use super::{Element, INSTANCE, Space, XsiType};

/// How deep elements may nest; descriptions need eight levels.
const MAX_DEPTH: usize = 32;
/// Most elements of a document; a description with every list full has a few hundred.
const MAX_ELEMENTS: usize = 10_000;

/// Why a body is not XML that is read here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The offset of the first byte that is not text.
    #[error("it is not UTF-8: the byte at offset {0} is not text")]
    NotUtf8(usize),
    /// What XML does not allow.
    #[error("it is malformed at offset {offset}: {reason}")]
    Malformed {
        /// Where, in bytes.
        offset: u64,
        /// Why.
        reason: String,
    },
    /// A declaration of further entities.
    #[error("it has a document type, which is not allowed")]
    DocumentType,
    /// A reference to what is not known.
    #[error("it refers to the entity '{0}'; allowed are amp, lt, gt, quot, apos and numbers")]
    Entity(String),
    /// A character without a form in XML.
    #[error("it has the character U+{0:04X}, which XML does not allow")]
    Character(u32),
    /// Too many levels.
    #[error("it nests deeper than {MAX_DEPTH} elements")]
    TooDeep,
    /// Too much of everything.
    #[error("it has more than {MAX_ELEMENTS} elements")]
    TooMany,
    /// Not one element around all others.
    #[error("it has no element, or more than one outside of any other")]
    NotOneRoot,
}

/// Reads a document.
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

/// What is read so far: the elements that are open, outermost first.
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

/// A name in the text of an attribute, by the prefixes that are declared there.
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

/// The character that a reference stands for.
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

/// The characters of XML 1.0.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests;
