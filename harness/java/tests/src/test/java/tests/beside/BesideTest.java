package tests.beside;

import org.junit.jupiter.api.Test;
import servicebus.emulator.ServiceBus;
import servicebus.emulator.ServiceBusEmulator;

@ServiceBusEmulator
class BesideTest {
    @Test
    void aResourceBesideTheClassDeclaresQueues(ServiceBus servicebus) {
        servicebus.counts("beside");
    }
}
