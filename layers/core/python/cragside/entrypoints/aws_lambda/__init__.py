"""The routes as a Lambda function behind API Gateway. To import it is to import neither LightRAG nor LangGraph."""
