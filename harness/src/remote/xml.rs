//! XML of the administration API, as far as a client reads it: a small tree that remembers what stood in each element.

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

/// How deep elements may nest: those of a feed need about ten levels.
const MAX_DEPTH: usize = 64;

/// One element, by its name without prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    /// What stands in it, as it was written.
    pub(crate) inner: String,
    pub(crate) children: Vec<Self>,
}

impl Element {
    /// Reads a document.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut reader = Reader::from_str(text);
        let mut open: Vec<(Self, usize)> = Vec::new();
        loop {
            let before = position(&reader);
            let event = reader.read_event().map_err(|error| error.to_string())?;
            let closed = match event {
                Event::Start(start) if open.len() < MAX_DEPTH => {
                    open.push((Self::named(&start), position(&reader)));
                    continue;
                }
                Event::Start(_) => {
                    return Err(format!("it nests deeper than {MAX_DEPTH} elements"));
                }
                Event::Empty(start) => Self::named(&start),
                Event::End(_) => {
                    let (element, from) = open.pop().ok_or("an element ends that has not begun")?;
                    let inner = text.get(from..before).unwrap_or_default().to_owned();
                    Self { inner, ..element }
                }
                Event::Eof => return Err("it ends within an element".to_owned()),
                _ => continue,
            };
            match open.last_mut() {
                Some((parent, _)) => parent.children.push(closed),
                None => return Ok(closed),
            }
        }
    }

    /// Finds the child of this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the text of an element that has no others in it.
    pub(crate) fn text(&self) -> String {
        match quick_xml::escape::unescape(&self.inner) {
            Ok(text) => text.into_owned(),
            Err(_) => self.inner.clone(),
        }
    }

    /// Returns the text of the child of this name.
    pub(crate) fn text_of(&self, name: &str) -> Option<String> {
        self.child(name).map(Self::text)
    }

    fn named(start: &BytesStart<'_>) -> Self {
        Self {
            name: start.local_name().as_ref().to_owned(),
            ..Self::default()
        }
    }
}

/// Writes a text so that it can stand in an element.
pub(crate) fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_known_by_their_names_and_keep_what_stands_in_them() {
        let text = r#"<a xmlns="x"><b>1 &lt; 2</b><d:c xmlns:d="y"><d:e/></d:c></a>"#;
        let read = Element::read(text).unwrap();
        assert_eq!(read.text_of("b").as_deref(), Some("1 < 2"));
        assert_eq!(read.child("c").unwrap().inner, "<d:e/>");
        assert!(Element::read("<a><b></a>").is_err());
        assert!(Element::read("<a>").is_err());
    }
}
