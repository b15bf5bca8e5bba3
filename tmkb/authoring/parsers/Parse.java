import com.sun.source.util.JavacTask;
import java.io.DataInputStream;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** Reads sources, each after its length in bytes, and writes a line for each: its first syntax error, or nothing. */
class Parse {
    private static final JavaCompiler COMPILER = ToolProvider.getSystemJavaCompiler();
    private static final JavaFileManager FILES = COMPILER.getStandardFileManager(null, null, null);

    public static void main(String[] arguments) throws Exception {
        var input = new DataInputStream(System.in);
        var output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (int count = input.readInt(); count > 0; count--) {
            output.println(error(new String(input.readNBytes(input.readInt()), StandardCharsets.UTF_8)));
        }
    }

    static String error(String source) throws Exception {
        var file = new SimpleJavaFileObject(URI.create("string:///Fragment.java"), JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                return source;
            }
        };
        var found = new DiagnosticCollector<JavaFileObject>();
        var task = COMPILER.getTask(null, FILES, found, null, null, List.of(file));
        ((JavacTask) task).parse();
        return found.getDiagnostics().stream()
            .filter(each -> each.getKind() == Diagnostic.Kind.ERROR)
            .map(each -> "line " + each.getLineNumber() + ": " + each.getMessage(null).lines().findFirst().orElse(""))
            .findFirst().orElse("");
    }
}
