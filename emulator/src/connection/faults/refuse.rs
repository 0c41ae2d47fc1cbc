//! Errors and disconnects that only a script causes.

use std::time::Duration;

use servicebus_amqp::{Error, Event, LinkId, Outcome};
use servicebus_broker::{SessionName, SubQueue};

use super::delays::End;
use crate::connection::links::Link;
use crate::connection::peer::ClientConnection;
use crate::faults::ErrorText;
use crate::nodes::{Condition, Reply, Request, ServiceError};

impl ClientConnection {
    /// Refuses a client's operation in the way of its kind.
    pub(crate) fn refuse_event(
        &mut self,
        event: &Event,
        status: Option<u16>,
        text: &ErrorText,
        now: Duration,
    ) {
        if let Event::Transfer(transfer) = event {
            if let Some(Link::Requests(requests)) = self.links.get(transfer.link) {
                let requests = requests.clone();
                let reply = self.scripted_reply(status, text);
                self.on_request(&requests, transfer, now, Some(reply));
            } else if !transfer.settled {
                let outcome = Outcome::from(self.scripted_error(text));
                self.answer(now, transfer.link, transfer.delivery, outcome);
            }
        } else if let Event::Settle(settlement) = event
            && !settlement.settled
        {
            let outcome = Outcome::from(self.scripted_error(text));
            self.settle_delivery(settlement.link, settlement.delivery, outcome);
        } else if let Event::Attach { link, .. } = event {
            let error = self.scripted_error(text);
            self.engine.refuse_attach(*link, error);
        }
    }

    fn scripted_reply(&mut self, status: Option<u16>, text: &ErrorText) -> Reply {
        let known = Condition::of_symbol(&text.condition);
        let status = status.map_or_else(
            || known.unwrap_or(Condition::InternalError).status(),
            i32::from,
        );
        match (200..300).contains(&status) {
            true => Reply::Done {
                status,
                body: vec![0x40],
            },
            false => {
                let error = self.scripted_error(text);
                Reply::Scripted {
                    status,
                    condition: error.condition.into_owned(),
                    text: error.description,
                }
            }
        }
    }

    /// Returns a scripted error, with a tracking id like any other.
    fn scripted_error(&mut self, scripted: &ErrorText) -> Error {
        if let Some(namespace) = &self.client.namespace {
            namespace.refusals.count(&scripted.condition);
        }
        let refusal = ServiceError::new(Condition::InternalError, scripted.description.as_str());
        let text = self.client.track_quietly(&refusal, None);
        Error::new(scripted.condition.clone(), text)
    }

    /// Closes a link. Settlements that the client sends before it learns of this get a lock-lost error.
    pub(crate) fn detach_with(&mut self, link: Option<LinkId>, text: &ErrorText) {
        let Some(link) = link else { return };
        let late = self.late_refusal(link);
        let error = self.scripted_error(text);
        self.engine.detach(link, Some(error));
        self.forget(link);
        if let Some(late) = late {
            self.links.insert(link, Link::Detached(late));
        }
        self.forget_detached();
    }

    fn late_refusal(&self, link: LinkId) -> Option<ServiceError> {
        let link = self.links.get(link)?;
        let (entity, kind) = if let Link::Receiver(receiver) = link {
            (&receiver.entity, receiver.kind)
        } else if let Link::Waiting(waiting) = link {
            (&waiting.receiver.entity, SubQueue::Active)
        } else {
            return None;
        };
        Some(self.client.lock_gone(entity, kind))
    }

    pub(crate) fn close_with(&mut self, text: &ErrorText) {
        let error = self.scripted_error(text);
        self.engine.close(Some(error));
        self.faults.end = End::Closed;
    }

    /// Aborts the connection without a close frame; earlier output is still written.
    pub(crate) fn abort(&mut self) {
        self.engine.flush();
        self.engine.lost();
        self.faults.end = End::Dropped;
    }

    /// Crashes the party's process, with all its connections.
    pub(crate) fn crash(&mut self) {
        self.abort();
        if let (Some(namespace), Some(party)) = (&self.client.namespace, &self.client.party) {
            namespace.crash(party);
        }
    }

    /// Updates the service: this connection's links detach at once, those of others in their next turns.
    pub(crate) fn fail_over(&mut self) {
        if let Some(namespace) = self.client.namespace.clone() {
            namespace.update_service();
            self.detach_all();
        }
    }

    pub(crate) fn discard_output(&mut self) {
        let output = self.engine.output();
        output.advance(output.len());
    }

    /// Detaches all links but those to `$cbs`, as an update of the service does.
    pub(crate) fn detach_all(&mut self) {
        let text = service_updated();
        let stays = |link: &Link| link.is_cbs() || matches!(link, Link::Detached(_));
        let links = self.links.iter().filter(|(_, link)| !stays(link));
        let links: Vec<LinkId> = links.map(|(id, _)| id).collect();
        for link in links {
            self.detach_with(Some(link), &text);
        }
    }

    /// Ends the locks of an operation, or those of its session.
    pub(crate) fn lose_locks_of(&mut self, event: &Event, of_session: bool) {
        let Some((entity, kind, tokens, session)) = self.locks_of(event) else {
            return;
        };
        let Some(namespace) = &self.client.namespace else {
            return;
        };
        namespace.operate(&entity, &mut self.client.caller, |entity, cx| {
            let of_message = tokens.iter().find_map(|&token| {
                let (_, message) = entity.locked_message(kind, token)?;
                SessionName::new(&message.session_id()?)
            });
            if of_session && let Some(session) = session.or(of_message) {
                entity.lose_session_lock(cx, &session);
            }
            if !of_session {
                for token in tokens {
                    entity.lose_lock(cx, kind, token);
                }
            }
        });
    }

    /// Returns the request in a transfer to a node, if it can be parsed.
    pub(crate) fn request_in(&self, payload: &[u8]) -> Option<Request> {
        Request::parse(payload).ok()
    }
}

pub(super) fn service_updated() -> ErrorText {
    ErrorText {
        condition: "amqp:link:detach-forced".into(),
        description: "The link is force detached: the service is updated.".into(),
    }
}
