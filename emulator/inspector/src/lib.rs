//! The inspector: a page of static files that shows what an emulator holds, by its control API.
//!
//! The files stand in `page/` as browsers load them: ES modules without a build step, whose types `tsc` checks. Here they are
//! as an emulator sends them, packed by gzip in one that keeps them in its program, and as text, of which the harness makes
//! the report of a failed test.

/// A file of the page.
#[derive(Debug)]
pub struct Asset {
    /// Where it is below the page's own path: `app.js`; `index.html` is the page itself.
    pub path: &'static str,
    /// Its `Content-Type`.
    pub media_type: &'static str,
    /// Its `ETag`, quotes included: another content has another one.
    pub etag: &'static str,
    /// Its content as it is sent, packed as [`CONTENT_ENCODING`] says.
    pub content: &'static [u8],
}

/// How the contents are packed: by `gzip` with that feature, else not at all.
pub const CONTENT_ENCODING: Option<&str> = if cfg!(feature = "gzip") {
    Some("gzip")
} else {
    None
};

/// All files of the page, by their paths.
pub static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// All files of the page by their paths, as text.
pub static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The policy that the page is sent with: nothing but its own files runs, and the one import map that it has.
///
/// The hash is that of the map in `index.html`.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self' 'sha256-5THUUQ/bMSna94zYgd65lUePcAa8Lqj5TiJG1wQWkH8='; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// The file at this path, `index.html` for an empty one.
pub fn asset(path: &str) -> Option<&'static Asset> {
    let path = match path {
        "" => "index.html",
        path => path,
    };
    ASSETS.iter().find(|asset| asset.path == path)
}
