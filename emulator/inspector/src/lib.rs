//! The inspector: a page of static files that shows what an emulator holds, by its control API.
//!
//! The files stand in `page/` as browsers load them: ES modules without a build step, whose types `tsc` checks. Here they are
//! compressed, as the emulator sends them.

/// A file of the page.
#[derive(Debug)]
pub struct Asset {
    /// Where it is below the page's own path: `app.js`; `index.html` is the page itself.
    pub path: &'static str,
    /// Its `Content-Type`.
    pub media_type: &'static str,
    /// Its `ETag`, quotes included: another content has another one.
    pub etag: &'static str,
    /// Its content, packed by gzip.
    pub gzip: &'static [u8],
}

/// All files of the page, by their paths.
pub static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

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
