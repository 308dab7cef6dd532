// SPDX-License-Identifier: CC-BY-4.0
//
// Messages by pigeon: lost, late, and out of order. Part of the example
// sources in crumb-nb, which asks only to be mentioned. No birds were
// harmed.

package example.pigeon;

import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Consumer;

/** A loft that sends long messages in leaves and puts together those that arrive. */
public class PigeonPost {

    /** Part of a message, small enough for a leg. */
    public record Leaf(String message, int number, int total, String text) {
        public Leaf {
            if (number < 0 || number >= total) {
                throw new IllegalArgumentException("leaf " + number + " of " + total);
            }
        }
    }

    /** Weather decides how long a flight takes, and whether it ends. */
    public interface Weather {
        double lossRate();

        int minutes(Random random);

        static Weather calm() {
            return new Weather() {
                @Override
                public double lossRate() {
                    return 0.02;
                }

                @Override
                public int minutes(Random random) {
                    return 40 + random.nextInt(10);
                }
            };
        }

        static Weather hawks() {
            return new Weather() {
                @Override
                public double lossRate() {
                    return 0.35;
                }

                @Override
                public int minutes(Random random) {
                    return 35 + random.nextInt(90);
                }
            };
        }
    }

    private static final class Flight {
        final int arrival;
        final Leaf leaf;

        Flight(int arrival, Leaf leaf) {
            this.arrival = arrival;
            this.leaf = leaf;
        }
    }

    /** The other end: collects leaves until a message is whole. */
    public static class Loft {
        private final Map<String, TreeMap<Integer, Leaf>> partial = new HashMap<>();
        private final Consumer<String> reader;

        public Loft(Consumer<String> reader) {
            this.reader = reader;
        }

        Optional<String> receive(Leaf leaf) {
            TreeMap<Integer, Leaf> leaves = partial.computeIfAbsent(leaf.message(), key -> new TreeMap<>());
            leaves.putIfAbsent(leaf.number(), leaf);
            if (leaves.size() < leaf.total()) {
                return Optional.empty();
            }
            partial.remove(leaf.message());
            StringBuilder whole = new StringBuilder();
            leaves.values().forEach(part -> whole.append(part.text()));
            reader.accept(whole.toString());
            return Optional.of(leaf.message());
        }

        public int unfinished() {
            return partial.size();
        }
    }

    private final Random random;
    private final Weather weather;

    public PigeonPost(Weather weather, long seed) {
        this.weather = weather;
        this.random = new Random(seed);
    }

    /**
     * Sends a text and sends again whatever was not confirmed in time.
     *
     * <p>The confirmation is a bird of its own and can be lost like any other, so a leaf may arrive
     * twice. The return value is the number of flights, both ways, or -1 if the patience ran out.
     */
    public int send(String id, String text, int leafLength, Loft loft, int patience) {
        int total = Math.max(1, (text.length() + leafLength - 1) / leafLength);
        boolean[] confirmed = new boolean[total];
        PriorityQueue<Flight> sky = new PriorityQueue<>(Comparator.comparingInt(f -> f.arrival));
        boolean delivered = false;
        int flights = 0;
        int clock = 0;

        while (clock <= patience) {
            for (int number = 0; number < total; number++) {
                if (confirmed[number]) {
                    continue;
                }
                int from = number * leafLength;
                int to = Math.min(text.length(), from + leafLength);
                Leaf leaf = new Leaf(id, number, total, text.substring(from, to));
                flights++;
                if (random.nextDouble() >= weather.lossRate()) {
                    sky.add(new Flight(clock + weather.minutes(random), leaf));
                }
            }

            int latest = clock;
            while (!sky.isEmpty()) {
                Flight flight = sky.poll();
                latest = Math.max(latest, flight.arrival);
                if (!delivered) {
                    delivered = loft.receive(flight.leaf).isPresent();
                }
                // the answer flies home at once
                flights++;
                if (random.nextDouble() >= weather.lossRate()) {
                    confirmed[flight.leaf.number()] = true;
                }
            }

            boolean all = true;
            for (boolean one : confirmed) {
                all &= one;
            }
            if (all) {
                return flights;
            }
            clock = Math.max(clock + 60, latest + 1);
        }
        return -1;
    }

    public static void main(String[] args) {
        Loft loft = new Loft(System.out::println);
        PigeonPost post = new PigeonPost(Weather.hawks(), 7L);
        int flights = post.send("m1", "The bridge at the mill is down; come by the ford.", 12, loft, 2000);
        System.out.println(flights + " flights, " + loft.unfinished() + " unfinished");
    }
}
