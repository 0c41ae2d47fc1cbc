//! Compact XML as the service writes it: no declaration, no white space between elements.

use std::borrow::Cow;

use quick_xml::escape::{escape, partial_escape};

/// Text in the making.
#[derive(Debug, Default)]
pub(crate) struct Writer(String);

impl Writer {
    pub(crate) fn new() -> Self {
        // What an entry with a queue in it needs.
        Self(String::with_capacity(2048))
    }

    /// Begins an element with attributes, each a name and its value.
    pub(crate) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.begin(name, attributes);
        self.0.push('>');
    }

    pub(crate) fn close(&mut self, name: &str) {
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
    }

    /// An element without content.
    pub(crate) fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.begin(name, attributes);
        self.0.push_str("/>");
    }

    /// An element with nothing but text.
    pub(crate) fn element(&mut self, name: &str, text: &str) {
        self.typed(name, &[], text);
    }

    /// The same with attributes.
    pub(crate) fn typed(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.open(name, attributes);
        self.0.push_str(&partial_escape(legal(text)));
        self.close(name);
    }

    pub(crate) fn finish(self) -> String {
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
