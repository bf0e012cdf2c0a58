// IDs from a column's DEFAULT by JDBC. Run: java -cp postgresql.jar Photos.java jdbc:postgresql://host/database
//
// The database is empty. If anything does not hold, the program says what, and exits with 1.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;

public class Photos {
    // pg_get_serial_sequence() finds the sequence because the column owns it.
    private static final String TABLE = """
            CREATE EXTENSION IF NOT EXISTS snowflake;
            CREATE SEQUENCE photos_id_seq;
            CREATE TABLE photos (
                id      bigint PRIMARY KEY DEFAULT snowflake_next_id(0, 'photos_id_seq'),
                caption text NOT NULL);
            ALTER SEQUENCE photos_id_seq OWNED BY photos.id;
            """;

    private final Connection connection;

    private Photos(Connection connection) {
        this.connection = connection;
    }

    private static void check(boolean holds, String problem) {
        if (!holds) {
            System.err.println("jdbc: " + problem);
            System.exit(1);
        }
    }

    private static void checkIncreasing(List<Long> ids, String where) {
        for (int i = 1; i < ids.size(); i++) {
            check(ids.get(i - 1) < ids.get(i), where + ": after " + ids.get(i - 1) + " came " + ids.get(i));
        }
    }

    private void run(String script) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(script);
        }
    }

    private List<Long> selectIds(String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) {
                statement.setObject(i + 1, values[i]);
            }
            return readIds(statement.executeQuery());
        }
    }

    private static List<Long> readIds(ResultSet rows) throws SQLException {
        List<Long> ids = new ArrayList<>();
        while (rows.next()) {
            ids.add(rows.getLong(1));
        }
        return ids;
    }

    /** One batch. The driver appends RETURNING "id" and reads the IDs back. */
    private List<Long> insert(String caption, int count) throws SQLException {
        String sql = "INSERT INTO photos (caption) VALUES (?)";
        try (PreparedStatement statement = connection.prepareStatement(sql, new String[] {"id"})) {
            for (int i = 0; i < count; i++) {
                statement.setString(1, caption);
                statement.addBatch();
            }
            statement.executeBatch();
            return readIds(statement.getGeneratedKeys());
        }
    }

    /** Each page begins after the last ID of the page before it. */
    private List<Long> readPages(int size) throws SQLException {
        List<Long> ids = new ArrayList<>();
        for (long last = 0;; last = ids.get(ids.size() - 1)) {
            List<Long> page = selectIds("SELECT id FROM photos WHERE id > ? ORDER BY id LIMIT ?", last, size);
            if (page.isEmpty()) {
                return ids;
            }
            ids.addAll(page);
        }
    }

    private List<Long> madeBetween(OffsetDateTime from, OffsetDateTime to) throws SQLException {
        return selectIds("SELECT id FROM photos WHERE snowflake_between(id, ?, ?) ORDER BY id", from, to);
    }

    private void use() throws SQLException {
        run(TABLE);
        List<Long> ids = insert("by jdbc", 25);
        checkIncreasing(ids, "INSERT");
        check(ids.get(0) >= 1L << 53, ids.get(0) + " is a position or a counter, and no ID");
        check(readPages(10).equals(ids), "the pages do not have all IDs in order");

        // A back-dated row has the ID of its time.
        OffsetDateTime leapDay = OffsetDateTime.parse("2024-02-29T12:00:00Z");
        List<Long> old = selectIds("INSERT INTO photos VALUES (snowflake_encode(?, 0, 0), 'old') RETURNING id", leapDay);
        OffsetDateTime now = OffsetDateTime.now();
        check(madeBetween(now.minusMinutes(1), now.plusMinutes(1)).equals(ids), "the last minute has other IDs");
        check(madeBetween(leapDay, leapDay.plusMinutes(1)).equals(old), "2024-02-29 12:00 has other IDs");

        // A row comes from a server whose clock is a second fast. Then the sequence is reset.
        List<Long> later = selectIds("INSERT INTO photos VALUES (snowflake_encode(?, 0, 0), 'imported') RETURNING id",
                OffsetDateTime.now().plus(Duration.ofSeconds(1)));
        run("SELECT setval(pg_get_serial_sequence('photos', 'id'), max(id)) FROM photos");
        later.addAll(insert("after the reset", 10));
        checkIncreasing(later, "after a reset");

        // In JSON an ID is a string: JavaScript rounds numbers of this size.
        String json = "{\"id\": \"" + ids.get(24) + "\"}";
        check(selectIds("SELECT id FROM photos WHERE id = (?::json ->> 'id')::bigint", json).equals(ids.subList(24, 25)),
                json + " is no photo");

        System.out.printf("jdbc %s: %d IDs by INSERT; the last one is %d.%n", connection.getMetaData().getDriverVersion(),
                ids.size() + later.size() - 1, later.get(later.size() - 1));
    }

    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            new Photos(connection).use();
        }
    }
}
