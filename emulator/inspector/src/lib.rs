//! The inspector: a page of static files that shows the content of an emulator, by its control API.
//!
//! The files in `page/` are what browsers load: ES modules without a build step, whose types `tsc` checks. This crate has
//! them as an emulator sends them, compressed by gzip if the feature is on, and as text, from which the harness creates the
//! report of a failed test.

/// A file of the page.
#[derive(Debug)]
pub struct Asset {
    /// Its path below the page's own: `app.js`; `index.html` is the page itself.
    pub path: &'static str,
    /// Its `Content-Type`.
    pub media_type: &'static str,
    /// Its `ETag`, quotes included, which changes with the content.
    pub etag: &'static str,
    /// Its content as it is sent, compressed as [`CONTENT_ENCODING`] says.
    pub content: &'static [u8],
}

/// The compression of the contents: `gzip` with that feature, else none.
pub const CONTENT_ENCODING: Option<&str> = if cfg!(feature = "gzip") {
    Some("gzip")
} else {
    None
};

/// All files of the page, by path.
pub static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// All files of the page by path, as text.
pub static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The content security policy of the page: only its own files and its one import map run.
///
/// The hash is that of the map in `index.html`.
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
