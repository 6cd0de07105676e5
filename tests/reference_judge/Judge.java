// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.iceberg.LocationProviders;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.rest.CatalogHandlers;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.CreateViewRequest;
import org.apache.iceberg.rest.requests.CreateViewRequestParser;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequestParser;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.view.ViewMetadata;
import org.apache.iceberg.view.ViewMetadataParser;
import org.apache.iceberg.view.ViewOperations;

/**
 * Judges commits, creations and documents with the handlers and parsers of the Java library.
 *
 * <p>Each line of standard input is a question, each line of standard output its answer: whether the library accepts the
 * question, the document that it would store, and whether it can open the document that the catalog would store.
 */
public final class Judge {
  private static final Namespace NAMESPACE = Namespace.of("ns");
  private static ObjectMapper json;
  private static Method commitTable;
  private static Method createTable;
  private static Method commitView;
  private static InMemoryCatalog catalog;
  private static int created = 0;

  public static void main(String[] args) throws Exception {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    Method mapper = Class.forName("org.apache.iceberg.rest.RESTObjectMapper").getDeclaredMethod("mapper");
    mapper.setAccessible(true);
    json = (ObjectMapper) mapper.invoke(null);
    commitTable = handler("commit", TableOperations.class);
    createTable = handler("create", TableOperations.class);
    commitView = handler("commit", ViewOperations.class);
    catalog = new InMemoryCatalog();
    catalog.initialize("judge", Map.of());
    catalog.createNamespace(NAMESPACE);
    BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = questions.readLine(); line != null; line = questions.readLine()) {
      JsonNode question = json.readTree(line);
      ObjectNode answer = json.createObjectNode();
      try {
        answer.put("document", judged(question));
      } catch (Throwable refusal) {
        answer.put("error", text(refusal));
      }
      if (question.hasNonNull("ours")) {
        try {
          answer.put("ours", opened(question.get("view").asBoolean(), question.get("ours").toString()));
        } catch (Throwable refusal) {
          answer.put("unreadable", text(refusal));
        }
      }
      answers.println(json.writeValueAsString(answer));
    }
  }

  private static Method handler(String name, Class<?> operations) throws NoSuchMethodException {
    Method method = CatalogHandlers.class.getDeclaredMethod(name, operations, UpdateTableRequest.class);
    method.setAccessible(true);
    return method;
  }

  private static String judged(JsonNode question) throws Throwable {
    boolean view = question.get("view").asBoolean();
    String kind = question.get("kind").asText();
    switch (kind) {
      case "read":
        return opened(view, question.get("document").toString());
      case "create":
        return view ? createdView(question) : createdTable(question);
      case "commit":
        UpdateTableRequest request = UpdateTableRequestParser.fromJson(question.get("request").toString());
        JsonNode base = question.get("base");
        String text = base == null || base.isNull() ? null : base.toString();
        if (view) {
          MemoryView operations = new MemoryView(ViewMetadataParser.fromJson("memory/base.json", text));
          invoke(commitView, operations, request);
          return ViewMetadataParser.toJson(operations.current());
        }
        MemoryTable operations = new MemoryTable(text == null ? null : TableMetadataParser.fromJson("memory/base.json", text));
        invoke(text == null ? createTable : commitTable, operations, request);
        return TableMetadataParser.toJson(operations.current());
      default:
        throw new IllegalArgumentException("unknown kind of question: " + kind);
    }
  }

  private static void invoke(Method method, Object operations, UpdateTableRequest request) throws Throwable {
    try {
      method.invoke(null, operations, request);
    } catch (InvocationTargetException refusal) {
      throw refusal.getCause();
    }
  }

  private static String createdTable(JsonNode question) throws Exception {
    CreateTableRequest request = json.treeToValue(question.get("request"), CreateTableRequest.class);
    // A created table would be read again for a minute and a half if it cannot be opened; a staged one is not read.
    TableMetadata staged = CatalogHandlers.stageTableCreate(catalog, NAMESPACE, request).tableMetadata();
    return opened(false, TableMetadataParser.toJson(staged));
  }

  private static String createdView(JsonNode question) {
    CreateViewRequest request = CreateViewRequestParser.fromJson(question.get("request").toString());
    TableIdentifier identifier = TableIdentifier.of(NAMESPACE, request.name());
    try {
      return ViewMetadataParser.toJson(CatalogHandlers.createView(catalog, NAMESPACE, request).metadata());
    } finally {
      catalog.dropView(identifier);
    }
  }

  private static String opened(boolean view, String document) {
    return view
        ? ViewMetadataParser.toJson(ViewMetadataParser.fromJson(document))
        : TableMetadataParser.toJson(TableMetadataParser.fromJson(document));
  }

  private static String text(Throwable refusal) {
    return refusal.getClass().getSimpleName() + ": " + refusal.getMessage();
  }

  /** A table in memory. What a commit stores is read again, as by the next reader. */
  private static final class MemoryTable implements TableOperations {
    private TableMetadata metadata;

    private MemoryTable(TableMetadata metadata) {
      this.metadata = metadata;
    }

    @Override
    public TableMetadata current() {
      return metadata;
    }

    @Override
    public TableMetadata refresh() {
      return metadata;
    }

    @Override
    public void commit(TableMetadata base, TableMetadata updated) {
      metadata = TableMetadataParser.fromJson(TableMetadataParser.toJson(updated));
    }

    @Override
    public FileIO io() {
      throw new UnsupportedOperationException();
    }

    @Override
    public EncryptionManager encryption() {
      throw new UnsupportedOperationException();
    }

    @Override
    public String metadataFileLocation(String fileName) {
      return fileName;
    }

    @Override
    public LocationProvider locationProvider() {
      return LocationProviders.locationsFor(metadata.location(), metadata.properties());
    }
  }

  /** A view in memory. */
  private static final class MemoryView implements ViewOperations {
    private ViewMetadata metadata;

    private MemoryView(ViewMetadata metadata) {
      this.metadata = metadata;
    }

    @Override
    public ViewMetadata current() {
      return metadata;
    }

    @Override
    public ViewMetadata refresh() {
      return metadata;
    }

    @Override
    public void commit(ViewMetadata base, ViewMetadata updated) {
      metadata = ViewMetadataParser.fromJson(ViewMetadataParser.toJson(updated));
    }
  }
}
