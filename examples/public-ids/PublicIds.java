// Public names of IDs: the ID encrypted with a secret key, as text. docs/public-ids.md explains it.
//
// java PublicIds.java FILE checks the lines of vectors.txt, or of a file like it. If anything does not hold, the
// program says what, and exits with 1.

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;

public class PublicIds {
    private static final Pattern NAME =
            Pattern.compile("[a-z]([A-Za-z0-9_-]{21}[AQgw]|[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])");

    private final Map<String, byte[]> keys;
    private final String current;

    /** Keys: versions, letters from a to z, and keys of 32 bytes (AES) or 24 (3DES). The key of current makes names. */
    public PublicIds(Map<String, byte[]> keys, String current) {
        keys.forEach(PublicIds::checkKey);
        this.keys = Map.copyOf(keys);
        this.current = current;
    }

    private static void checkKey(String version, byte[] key) {
        if (!version.matches("[a-z]") || key.length != 32 && key.length != 24) {
            throw new IllegalArgumentException("key \"" + version
                    + "\": a version is one letter from a to z, and a key has 32 bytes (AES) or 24 (3DES)");
        }
        LongStream parts = IntStream.range(0, key.length / 8)
                .mapToLong(i -> ByteBuffer.wrap(key).getLong(8 * i) & 0xfefefefefefefefeL);
        if (parts.distinct().count() < key.length / 8) { // 3DES would be DES; random keys have none
            throw new IllegalArgumentException(
                    "key \"" + version + "\" is weak: two of its parts of 8 bytes are equal");
        }
    }

    // The bytes of a block: the ID, and 8 zeros with AES.
    private static int sizeOf(byte[] key) {
        return key.length == 32 ? 16 : 8;
    }

    public String nameOf(long id) {
        byte[] key = keys.get(current);
        byte[] block = crypt(Cipher.ENCRYPT_MODE, key, ByteBuffer.allocate(sizeOf(key)).putLong(id).array());
        return current + Base64.getUrlEncoder().withoutPadding().encodeToString(block);
    }

    /** The ID. A name that was not made with a key of these is an error with AES, and some number with 3DES. */
    public long idOf(String name) {
        if (name.length() != 23 && name.length() != 12) {
            throw new IllegalArgumentException(
                    "a public name has 23 characters, or 12 with 3DES, not " + name.length());
        }
        if (!NAME.matcher(name).matches()) {
            throw new IllegalArgumentException("not a public name: \"" + name + "\"");
        }
        byte[] key = keys.get(name.substring(0, 1));
        if (key == null) {
            throw new IllegalArgumentException("no key of version \"" + name.charAt(0) + "\"");
        }
        byte[] encrypted = Base64.getUrlDecoder().decode(name.substring(1));
        if (encrypted.length == sizeOf(key)) {
            ByteBuffer block = ByteBuffer.wrap(crypt(Cipher.DECRYPT_MODE, key, encrypted));
            long id = block.getLong();
            if (!block.hasRemaining() || block.getLong() == 0) {
                return id;
            }
        }
        throw new IllegalArgumentException("not made with key \"" + name.charAt(0) + "\": \"" + name + "\"");
    }

    // A Cipher is made for each call, because threads cannot share one.
    private static byte[] crypt(int mode, byte[] key, byte[] block) {
        try {
            String algorithm = key.length == 32 ? "AES" : "DESede";
            Cipher cipher = Cipher.getInstance(algorithm + "/ECB/NoPadding");
            cipher.init(mode, new SecretKeySpec(key, algorithm));
            return cipher.doFinal(block);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void check(Object wanted, Object got) {
        if (!wanted.equals(got)) {
            System.err.println("java: " + got + " in place of " + wanted);
            System.exit(1);
        }
    }

    private static String refusal(String version, byte[] key, String name) {
        try {
            return name + " is ID " + new PublicIds(Map.of(version, key), version).idOf(name);
        } catch (IllegalArgumentException error) {
            return error.getMessage();
        }
    }

    public static void main(String[] arguments) throws IOException {
        List<String[]> vectors = Files.readAllLines(Path.of(arguments[0])).stream()
                .filter(line -> !line.isEmpty() && !line.startsWith("#"))
                .map(line -> line.split(" ", 5)).toList();
        Map<String, byte[]> keys = new HashMap<>();
        for (String[] vector : vectors) {
            if (vector[0].equals("made")) {
                keys.put(vector[1], HexFormat.of().parseHex(vector[2]));
            }
        }
        for (String[] vector : vectors) {
            if (vector[0].equals("made")) {
                PublicIds ids = new PublicIds(keys, vector[1]);
                check(vector[4], ids.nameOf(Long.parseLong(vector[3])));
                check(Long.parseLong(vector[3]), ids.idOf(vector[4]));
            } else {
                check(vector[4], refusal(vector[1], HexFormat.of().parseHex(vector[2]), vector[3]));
            }
        }
        System.out.printf("java %s: %d vectors hold%n", System.getProperty("java.version"), vectors.size());
    }
}
