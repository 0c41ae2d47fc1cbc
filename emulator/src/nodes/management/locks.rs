//! `renew-lock`.

use servicebus_broker::{Deviation, RenewError};

use super::Management;
use crate::nodes::{Refusal, Reply};

impl Management<'_, '_> {
    /// `{lock-tokens: uuid[]}` → `{expirations: timestamp[]}`, in the client's time.
    pub(super) fn renew_lock(&mut self) -> Result<Reply, Refusal> {
        let tokens = self.lock_tokens()?;
        let renewed = self.mailbox.renew_locks(self.cx, self.kind, &tokens);
        let ends = renewed.map_err(|error| match error {
            RenewError::LockLost(_) if self.mailbox.deviates(Deviation::LostLockIsNotFound) => {
                Refusal::not_found(self.host, self.mailbox.path().as_str())
            }
            RenewError::LockLost(_) => Refusal::lock_lost(),
            RenewError::UnderSession(_) => Refusal::locked_by_session(self.mailbox.path().as_str()),
            RenewError::Disabled => Refusal::disabled(self.host, self.mailbox.path().as_str()),
        })?;
        let ends = ends
            .iter()
            .map(|end| end.as_millis().saturating_sub(self.ahead));
        Ok(Reply::map(1, |out| {
            out.string("expirations");
            out.timestamp_array(ends);
        }))
    }
}
