package tests.beside;

import servicebus.emulator.ServiceBusEmulator;

/** Its subclass in another package has the resource, too. */
@ServiceBusEmulator(topology = "topology.json")
public class Base {}
