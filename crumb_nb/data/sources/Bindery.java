/*
 * SPDX-License-Identifier: CC-BY-4.0
 *
 * A bookbinder's order of work, thought up for the chunking lessons of
 * crumb-nb. Reuse is welcome with credit; glue at your own risk.
 */

package example.bindery;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Plans which step of which book is done next at which bench. */
public final class Bindery {

    /** Marks steps after which a book must lie in the press overnight. */
    @Retention(RetentionPolicy.RUNTIME)
    @Target(ElementType.FIELD)
    public @interface Rests {
        int hours() default 12;
    }

    public enum Step {
        FOLD,
        SEW,
        @Rests
        GLUE_SPINE,
        TRIM,
        @Rests(hours = 24)
        CASE_IN,
        TITLE;

        int restHours() {
            try {
                Rests rests = Step.class.getField(name()).getAnnotation(Rests.class);
                return rests == null ? 0 : rests.hours();
            } catch (NoSuchFieldException e) {
                throw new AssertionError(e);
            }
        }

        boolean isLast() {
            return ordinal() == values().length - 1;
        }
    }

    /** One book on its way through the workshop. */
    public static final class Book {
        private final String title;
        private final int sections;
        private Step next = Step.FOLD;
        private int restsUntil;

        public Book(String title, int sections) {
            this.title = Objects.requireNonNull(title);
            if (sections < 1) {
                throw new IllegalArgumentException("a book has at least one section");
            }
            this.sections = sections;
        }

        /** Builds a book from a slip such as "Herbal, 24". */
        public static class Slip {
            private final String text;

            public Slip(String text) {
                this.text = text;
            }

            public Book read() {
                int comma = text.lastIndexOf(',');
                if (comma < 0) {
                    throw new IllegalArgumentException("no number of sections on: " + text);
                }
                String title = text.substring(0, comma).strip();
                int sections = Integer.parseInt(text.substring(comma + 1).strip());
                return new Book(title, sections);
            }
        }

        @Override
        public String toString() {
            return title + " (" + next + ")";
        }
    }

    private final Deque<Book> shelf = new ArrayDeque<>();
    private final Map<Step, Integer> benches = new EnumMap<>(Step.class);

    public Bindery bench(Step step, int places) {
        benches.merge(step, places, Integer::sum);
        return this;
    }

    public void accept(Book book) {
        shelf.addLast(book);
    }

    /**
     * Works through the shelf until every book is titled and returns the diary.
     *
     * <p>Within an hour each bench serves as many books as it has places. A book that has just been
     * glued or cased in rests. Thick books need two hours for sewing, which is entered as a rest of
     * one hour after the first.
     */
    public List<String> work(int hoursAtMost) {
        List<String> diary = new ArrayList<>();
        for (int hour = 0; hour < hoursAtMost && !shelf.isEmpty(); hour++) {
            Map<Step, Integer> free = new EnumMap<>(benches);
            int waiting = shelf.size();

            for (int turn = 0; turn < waiting; turn++) {
                Book book = shelf.removeFirst();

                if (book.restsUntil > hour) {
                    shelf.addLast(book);
                    continue;
                }

                int places = free.getOrDefault(book.next, 0);
                if (places == 0) {
                    if (!benches.containsKey(book.next)) {
                        throw new IllegalStateException("nobody here can do " + book.next);
                    }
                    shelf.addLast(book);
                    continue;
                }
                free.put(book.next, places - 1);
                diary.add(hour + " h: " + book);

                int rest = book.next.restHours();
                if (book.next == Step.SEW && book.sections > 20) {
                    rest += 1;
                }
                book.restsUntil = hour + 1 + rest;

                if (book.next.isLast()) {
                    diary.add(hour + " h: " + book.title + " is finished");
                } else {
                    book.next = Step.values()[book.next.ordinal() + 1];
                    shelf.addLast(book);
                }
            }
        }

        if (!shelf.isEmpty()) {
            diary.add("unfinished: " + shelf);
        }
        return diary;
    }

    public static void main(String[] args) {
        Bindery bindery = new Bindery();
        for (Step step : Step.values()) {
            bindery.bench(step, 1);
        }
        bindery.accept(new Book.Slip("Herbal, 24").read());
        bindery.accept(new Book.Slip("Hymns, 9").read());
        bindery.work(120).forEach(System.out::println);
    }
}
