//! Compact XML as the service writes it: no declaration, no white space between elements.

use quick_xml::escape::{escape, partial_escape};

/// Text in the making.
#[derive(Debug, Default)]
pub(in crate::admin) struct Writer(String);

impl Writer {
    pub(in crate::admin) fn new() -> Self {
        // What an entry with a queue in it needs.
        Self(String::with_capacity(2048))
    }

    /// Begins an element with attributes, each a name and its value.
    pub(in crate::admin) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.begin(name, attributes);
        self.0.push('>');
    }

    pub(in crate::admin) fn close(&mut self, name: &str) {
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
    }

    /// An element without content.
    pub(in crate::admin) fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.begin(name, attributes);
        self.0.push_str("/>");
    }

    /// An element with nothing but text.
    pub(in crate::admin) fn element(&mut self, name: &str, text: &str) {
        self.typed(name, &[], text);
    }

    /// The same with attributes.
    pub(in crate::admin) fn typed(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.open(name, attributes);
        self.0.push_str(&partial_escape(text));
        self.close(name);
    }

    pub(in crate::admin) fn finish(self) -> String {
        self.0
    }

    fn begin(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.0.push('<');
        self.0.push_str(name);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.0.push_str(&escape(*value));
            self.0.push('"');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
