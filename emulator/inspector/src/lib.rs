//! The inspector: a page of static files that shows the content of an emulator through its control API.
//!
//! Browsers load the files in `page/`: ES modules without a build step, whose types `tsc` checks. This crate contains them as
//! the emulator sends them, compressed with the feature `gzip`, and as text, from which the harness creates the report of a
//! failed test.

/// A file of the page.
#[derive(Debug)]
pub struct Asset {
    /// Its path relative to the page, such as `app.js`; `index.html` is the page itself.
    pub path: &'static str,
    /// Its `Content-Type`.
    pub media_type: &'static str,
    /// Its `ETag` with quotes, which changes with the content.
    pub etag: &'static str,
    /// Its content as the emulator sends it, compressed as [`CONTENT_ENCODING`] specifies.
    pub content: &'static [u8],
}

/// The compression of the contents: `gzip` with the feature of that name, else none.
pub const CONTENT_ENCODING: Option<&str> = if cfg!(feature = "gzip") {
    Some("gzip")
} else {
    None
};

/// All files of the page, by path.
pub static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// All files of the page by path, as text.
pub static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The content security policy of the page: only its own files and its import map run.
///
/// The hash is that of the import map in `index.html`.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self' 'sha256-5THUUQ/bMSna94zYgd65lUePcAa8Lqj5TiJG1wQWkH8='; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Returns the file at this path; `index.html` for an empty one.
pub fn asset(path: &str) -> Option<&'static Asset> {
    let path = match path {
        "" => "index.html",
        path => path,
    };
    ASSETS.iter().find(|asset| asset.path == path)
}
