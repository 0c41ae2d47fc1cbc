//! Appends encoded values to a buffer.

use uuid::Uuid;

use crate::code;

/// Appends AMQP values to a byte vector, always in the shortest form that every SDK reads.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

/// The start of a compound, for [`Writer::end`].
#[derive(Debug)]
#[must_use = "a compound that is not ended has no size"]
pub struct Mark {
    content: usize,
}

impl<'a> Writer<'a> {
    /// Creates a writer that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Returns the number of bytes in the buffer, those before the writer included.
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// Appends the descriptor `0x00 0x53 code`, the form that every SDK reads (spec/wire.md §0.3).
    pub fn descriptor(&mut self, code: u8) {
        self.out
            .extend_from_slice(&[code::DESCRIBED, code::ULONG_SMALL, code]);
    }

    /// Appends `0x00` and an eight-byte descriptor, for codes that do not fit one byte.
    pub fn long_descriptor(&mut self, code: u64) {
        self.out.extend_from_slice(&[code::DESCRIBED, code::ULONG]);
        self.out.extend_from_slice(&code.to_be_bytes());
    }

    /// Appends encoded bytes.
    pub fn raw(&mut self, encoded: &[u8]) {
        self.out.extend_from_slice(encoded);
    }

    /// Appends a `null`.
    pub fn null(&mut self) {
        self.out.push(code::NULL);
    }

    /// Appends a `boolean`.
    pub fn bool(&mut self, flag: bool) {
        self.out.push(if flag { code::TRUE } else { code::FALSE });
    }

    /// Appends a `ubyte`.
    pub fn ubyte(&mut self, number: u8) {
        self.out.extend_from_slice(&[code::UBYTE, number]);
    }

    /// Appends a `ushort`.
    pub fn ushort(&mut self, number: u16) {
        self.out.push(code::USHORT);
        self.out.extend_from_slice(&number.to_be_bytes());
    }

    /// Appends a `uint`.
    pub fn uint(&mut self, number: u32) {
        match u8::try_from(number) {
            Ok(0) => self.out.push(code::UINT_ZERO),
            Ok(small) => self.out.extend_from_slice(&[code::UINT_SMALL, small]),
            Err(_) => {
                self.out.push(code::UINT);
                self.out.extend_from_slice(&number.to_be_bytes());
            }
        }
    }

    /// Appends a `ulong`.
    pub fn ulong(&mut self, number: u64) {
        match u8::try_from(number) {
            Ok(0) => self.out.push(code::ULONG_ZERO),
            Ok(small) => self.out.extend_from_slice(&[code::ULONG_SMALL, small]),
            Err(_) => {
                self.out.push(code::ULONG);
                self.out.extend_from_slice(&number.to_be_bytes());
            }
        }
    }

    /// Appends an `int` in the four-byte form.
    pub fn int(&mut self, number: i32) {
        self.out.push(code::INT);
        self.out.extend_from_slice(&number.to_be_bytes());
    }

    /// Appends a `long` in the eight-byte form.
    pub fn long(&mut self, number: i64) {
        self.out.push(code::LONG);
        self.out.extend_from_slice(&number.to_be_bytes());
    }

    /// Appends a `double`.
    pub fn double(&mut self, number: f64) {
        self.out.push(code::DOUBLE);
        self.out.extend_from_slice(&number.to_be_bytes());
    }

    /// Appends a `timestamp`, in milliseconds since the Unix epoch.
    pub fn timestamp(&mut self, milliseconds: i64) {
        self.out.push(code::TIMESTAMP);
        self.out.extend_from_slice(&milliseconds.to_be_bytes());
    }

    /// Appends a `uuid` in network order.
    pub fn uuid(&mut self, uuid: Uuid) {
        self.out.push(code::UUID);
        self.out.extend_from_slice(uuid.as_bytes());
    }

    /// Appends a `binary`.
    pub fn binary(&mut self, bytes: &[u8]) {
        self.sized(code::BINARY8, code::BINARY32, bytes);
    }

    /// Appends a `string`.
    pub fn string(&mut self, text: &str) {
        self.sized(code::STRING8, code::STRING32, text.as_bytes());
    }

    /// Appends a `symbol`.
    pub fn symbol(&mut self, name: &str) {
        self.sized(code::SYMBOL8, code::SYMBOL32, name.as_bytes());
    }

    /// Begins a list; its elements follow.
    pub fn begin_list(&mut self) -> Mark {
        self.begin(code::LIST32)
    }

    /// Begins a map; alternating keys and values follow.
    pub fn begin_map(&mut self) -> Mark {
        self.begin(code::MAP32)
    }

    /// Ends a list or map of `count` elements; in a map, of keys and values.
    pub fn end(&mut self, mark: Mark, count: u32) {
        let size = (self.out.len() - mark.content + 4) as u32;
        self.out[mark.content - 8..mark.content - 4].copy_from_slice(&size.to_be_bytes());
        self.out[mark.content - 4..mark.content].copy_from_slice(&count.to_be_bytes());
    }

    /// Appends an array of `long`.
    pub fn long_array(&mut self, numbers: impl ExactSizeIterator<Item = i64>) {
        self.array(code::LONG, numbers.map(i64::to_be_bytes));
    }

    /// Appends an array of `timestamp`.
    pub fn timestamp_array(&mut self, instants: impl ExactSizeIterator<Item = i64>) {
        self.array(code::TIMESTAMP, instants.map(i64::to_be_bytes));
    }

    /// Appends an array of `uuid`.
    pub fn uuid_array(&mut self, uuids: impl ExactSizeIterator<Item = Uuid>) {
        self.array(code::UUID, uuids.map(Uuid::into_bytes));
    }

    /// Appends an array of `string`.
    pub fn string_array<'t>(&mut self, texts: impl ExactSizeIterator<Item = &'t str>) {
        let count = texts.len() as u32;
        let mark = self.begin(code::ARRAY32);
        self.out.push(code::STRING32);
        for text in texts {
            self.out
                .extend_from_slice(&(text.len() as u32).to_be_bytes());
            self.out.extend_from_slice(text.as_bytes());
        }
        self.end(mark, count);
    }

    /// Appends an array of `symbol`.
    pub fn symbol_array(&mut self, names: &[&str]) {
        let mark = self.begin(code::ARRAY32);
        self.out.push(code::SYMBOL8);
        for name in names {
            debug_assert!(name.len() < 256, "symbol arrays hold short names");
            self.out.push(name.len() as u8);
            self.out.extend_from_slice(name.as_bytes());
        }
        self.end(mark, names.len() as u32);
    }

    fn array<const N: usize>(
        &mut self,
        code: u8,
        elements: impl ExactSizeIterator<Item = [u8; N]>,
    ) {
        let count = elements.len() as u32;
        let mark = self.begin(code::ARRAY32);
        self.out.push(code);
        for element in elements {
            self.out.extend_from_slice(&element);
        }
        self.end(mark, count);
    }

    fn begin(&mut self, code: u8) -> Mark {
        self.out.push(code);
        self.out.extend_from_slice(&[0; 8]);
        Mark {
            content: self.out.len(),
        }
    }

    fn sized(&mut self, short: u8, long: u8, bytes: &[u8]) {
        match u8::try_from(bytes.len()) {
            Ok(length) => self.out.extend_from_slice(&[short, length]),
            Err(_) => {
                self.out.push(long);
                self.out
                    .extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            }
        }
        self.out.extend_from_slice(bytes);
    }
}
