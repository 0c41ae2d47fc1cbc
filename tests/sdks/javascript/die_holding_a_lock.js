/**
 * Receives one message and exits without notifying the broker.
 *
 *     node die_holding_a_lock.js <queue>
 */
"use strict";

const { Bus, receive } = require("./bus");

receive(new Bus().receiver(process.argv[2])).then(
  // Exits without closing anything: the system closes the socket.
  () => process.exit(0),
  (error) => {
    console.log(error);
    process.exit(1);
  },
);
