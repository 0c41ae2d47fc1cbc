//! To which namespace a connection belongs: chosen once, by host name, else by the name of a key
//! (interfaces.md). Where there is only one, there is nothing to choose.

use std::sync::Arc;

use crate::auth::sas;
use crate::namespace::Namespace;
use crate::server::Shared;

impl Shared {
    pub(crate) fn only_namespace(&self) -> Option<Arc<Namespace>> {
        match self.namespaces.as_slice() {
            [only] => Some(Arc::clone(only)),
            _ => None,
        }
    }

    pub(crate) fn namespace(&self, name: &str) -> Option<&Arc<Namespace>> {
        let named = |namespace: &&Arc<Namespace>| namespace.name().eq_ignore_ascii_case(name);
        self.namespaces.iter().find(named)
    }

    /// By the first label of a host name, as in `name.servicebus.windows.net`.
    pub(crate) fn namespace_of_host(&self, host: &str) -> Option<Arc<Namespace>> {
        let label = host.split(['.', ':']).next()?;
        self.namespace(label).cloned()
    }

    /// By the key that a SASL PLAIN response names.
    pub(crate) fn namespace_of_plain(&self, response: &[u8]) -> Option<Arc<Namespace>> {
        let name = response.split(|&byte| byte == 0).nth(1)?;
        self.namespace_of_key(std::str::from_utf8(name).ok()?)
    }

    /// By the key that a shared access signature names.
    pub(crate) fn namespace_of_token(&self, token: &str) -> Option<Arc<Namespace>> {
        self.namespace_of_key(&sas::claimed_key_name(token)?)
    }

    fn namespace_of_key(&self, name: &str) -> Option<Arc<Namespace>> {
        let has_key = |namespace: &&Arc<Namespace>| {
            let keys = &namespace.config.keys;
            keys.iter().any(|key| key.name == name)
        };
        let mut found = self.namespaces.iter().filter(has_key);
        let first = found.next()?;
        found.next().is_none().then(|| Arc::clone(first))
    }
}
